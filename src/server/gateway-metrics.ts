import type { Metrics } from '../observe/metrics.ts'
import type { TargetView } from '../proxy/targets/targets.ts'
import type { GenerationParts } from './generation-parts.ts'

/** Adds the metrics whose values are read when the metrics are collected. */
export function addGatewayMetrics(metrics: Metrics, current: () => GenerationParts): void {
  metrics.gauge({
    name: 'gatehouse_provider_known',
    help: 'Whether the gateway has read the discovery document of the provider: 1 or 0.',
    labels: ['provider'],
    merge: 'min',
    read: () => current().realms.all.map(({ config, provider }) => [[config.name], provider.isKnown ? 1 : 0] as const),
  })
  metrics.gauge({
    name: 'gatehouse_signing_key_age_seconds',
    help: 'How long the key of signed identities has been in use.',
    labels: ['algorithm'],
    merge: 'max',
    read: () => current().signingKeys.ages(),
  })
  metrics.gauge({
    name: 'gatehouse_signals_stream_up',
    help: 'Whether the last request to the transmitter of security events succeeded: 1 or 0. Only from the process that keeps or polls the stream.',
    labels: ['provider'],
    merge: 'min',
    read: () =>
      current().realms.all.flatMap(({ config, receiver }) =>
        receiver?.isUp === undefined ? [] : [[[config.name], receiver.isUp ? 1 : 0] as const],
      ),
  })
  metrics.gauge({
    name: 'gatehouse_upstream_waiting_requests',
    help: 'Requests that wait for a connection to their upstream.',
    labels: ['upstream'],
    merge: 'sum',
    read: () =>
      current()
        .upstreams.loads()
        .map(([upstream, { waiting }]) => [[upstream], waiting] as const),
  })
  metrics.gauge({
    name: 'gatehouse_upstream_exchanges',
    help: 'Exchanges with the upstream: request (counts for max_connections) or stream (counts for max_streams).',
    labels: ['upstream', 'kind'],
    merge: 'sum',
    read: () =>
      current()
        .upstreams.loads()
        .flatMap(([upstream, { requests, streams }]) => [
          [[upstream, 'request'], requests] as const,
          [[upstream, 'stream'], streams] as const,
        ]),
  })
  addTargetMetrics(metrics, current)
}

function addTargetMetrics(metrics: Metrics, current: () => GenerationParts): void {
  const targetLabels = ['upstream', 'target']
  const ofTargets = (value: (target: TargetView) => number) =>
    current()
      .upstreams.targets()
      .flatMap(([upstream, targets]) => targets.map((target) => [[upstream, target.name], value(target)] as const))
  metrics.gauge({
    name: 'gatehouse_target_up',
    help: 'Whether the target gets requests: 1, or 0 while it is ejected or unhealthy.',
    labels: targetLabels,
    merge: 'min',
    read: () => ofTargets(({ state }) => (state === 'up' || state === 'starting' ? 1 : 0)),
  })
  metrics.gauge({
    name: 'gatehouse_target_open_requests',
    help: 'Open requests, event streams and tunnels, where an upstream has several targets.',
    labels: targetLabels,
    merge: 'sum',
    read: () => ofTargets(({ open }) => open),
  })
}
