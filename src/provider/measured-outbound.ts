import type { Metrics } from '../observe/metrics.ts'
import { isResponseTimeout, type Outbound } from './outbound.ts'

/** The bounds of the histogram, in seconds. */
const durationBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Wraps the requests to the provider to measure their time and count their outcomes. `endpointOf`
 * returns the name of an endpoint by its URL, for a label of the metrics.
 */
export function measuredOutbound(outbound: Outbound, metrics: Metrics, endpointOf: (url: string) => string): Outbound {
  const requests = metrics.counter({
    name: 'gatehouse_provider_requests_total',
    help: 'Requests to the provider, by endpoint. The response had 2xx or 3xx (ok), 4xx (refused), 5xx (failed), was unusable or missing (unavailable).',
    labels: ['endpoint', 'outcome'],
  })
  const durations = metrics.histogram(
    {
      name: 'gatehouse_provider_request_duration_seconds',
      help: 'How long the provider took to respond.',
      labels: ['endpoint'],
    },
    durationBounds,
  )
  return {
    fetch: async (url, options) => {
      const endpoint = endpointOf(url)
      const startedAt = performance.now()
      try {
        const response = await outbound.fetch(url, options)
        if (options.longPoll === undefined) durations.of(endpoint).observe((performance.now() - startedAt) / 1000)
        requests.of(endpoint, outcomeOf(response.status)).add()
        return response
      } catch (error) {
        // A long poll may end without a response.
        const isQuiet = options.longPoll !== undefined && (isResponseTimeout(error) || options.longPoll.signal.aborted)
        if (!isQuiet) requests.of(endpoint, 'unavailable').add()
        throw error
      }
    },
    close: () => outbound.close(),
  }
}

function outcomeOf(status: number): string {
  if (status < 400) return 'ok'
  return status < 500 ? 'refused' : 'failed'
}
