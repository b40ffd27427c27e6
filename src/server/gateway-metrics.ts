import type { Metrics } from '../observe/metrics.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import type { SigningKeys } from '../signing/signing-keys.ts'

/** The parts of the current generation that have metrics. */
interface MeasuredParts {
  readonly provider: Pick<OpenidProvider, 'isKnown'>
  readonly signingKeys: Pick<SigningKeys, 'ages'>
  readonly upstreams: Upstreams
}

/** Adds the metrics whose values are read when the metrics are collected. */
export function addGatewayMetrics(metrics: Metrics, current: () => MeasuredParts): void {
  metrics.gauge(
    {
      name: 'gatehouse_provider_known',
      help: 'Whether the gateway has read the discovery document of the provider: 1 or 0.',
    },
    'min',
    () => (current().provider.isKnown ? 1 : 0),
  )
  metrics.gauge(
    {
      name: 'gatehouse_signing_key_age_seconds',
      help: 'How long the key of signed identities has been in use.',
      labels: ['algorithm'],
    },
    'max',
    () => current().signingKeys.ages(),
  )
  metrics.gauge(
    {
      name: 'gatehouse_upstream_waiting_requests',
      help: 'Requests that wait for a connection to their upstream.',
      labels: ['upstream'],
    },
    'sum',
    () =>
      current()
        .upstreams.loads()
        .map(([upstream, { waiting }]) => [[upstream], waiting] as const),
  )
  metrics.gauge(
    {
      name: 'gatehouse_upstream_exchanges',
      help: 'Exchanges with the upstream: request (counts for max_connections) or stream (counts for max_streams).',
      labels: ['upstream', 'kind'],
    },
    'sum',
    () =>
      current()
        .upstreams.loads()
        .flatMap(([upstream, { requests, streams }]) => [
          [[upstream, 'request'], requests] as const,
          [[upstream, 'stream'], streams] as const,
        ]),
  )
}

type Refreshing = Pick<OpenidProvider, 'refresh' | 'userinfo' | 'config'>

/** The provider, with its refreshes counted. */
export function countedRefreshes(provider: Refreshing, metrics: Metrics): Refreshing {
  const refreshes = metrics.counter({
    name: 'gatehouse_refreshes_total',
    help: 'Token refreshes: refreshed, invalid_grant (the session ends), or failed (retried).',
    labels: ['outcome'],
  })
  for (const outcome of ['refreshed', 'invalid_grant', 'failed']) refreshes.of(outcome)
  return {
    config: provider.config,
    userinfo: (tokens, sub) => provider.userinfo(tokens, sub),
    refresh: async (tokens, sub) => {
      try {
        const refreshed = await provider.refresh(tokens, sub)
        refreshes.of(refreshed.kind).add()
        return refreshed
      } catch (error) {
        refreshes.of('failed').add()
        throw error
      }
    },
  }
}
