import {
  deliveryMethods,
  type SignalsConfig,
  type Stream,
  type StreamFailure,
  type TransmitterFacts,
  type TransmitterMetadata,
} from '../../src/entries/doctor.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

const noEvents = 'no security event arrives: sessions of disabled accounts continue'

/** The findings about the transmitter of security events, and about the stream there. */
export function transmitterFindings(facts: TransmitterFacts, signals: SignalsConfig, receiverUrl: string): Finding[] {
  const { metadata, keys, stream, poll } = facts
  if ('why' in metadata)
    return [
      fault('signals.metadata', `the metadata of the transmitter cannot be used: ${metadata.why}`, {
        why: 'no security event can be verified',
        todo: 'write provider.signals.transmitter exactly as the transmitter does: the URL before /.well-known/ssf-configuration',
      }),
    ]
  return [
    ok('signals.metadata', `the transmitter ${signals.transmitter} responds with its metadata`),
    keysFinding(keys),
    ...deliveryFindings(metadata, signals),
    ...(stream === undefined ? [] : streamFindings(stream, signals, receiverUrl)),
    ...(poll === undefined ? [] : [pollFinding(poll)]),
  ]
}

function keysFinding(keys: TransmitterFacts['keys']): Finding {
  if (Array.isArray(keys) && keys.length > 0)
    return ok('signals.keys', `the transmitter has ${keys.length} ${keys.length === 1 ? 'key' : 'keys'}`)
  const why = keys !== undefined && 'why' in keys ? `: ${keys.why}` : ''
  return fault('signals.keys', `the transmitter has no usable keys${why}`, {
    why: 'no security event can be verified',
    todo: 'check jwks_uri in the metadata of the transmitter',
  })
}

function deliveryFindings(metadata: TransmitterMetadata, { delivery, stream }: SignalsConfig): Finding[] {
  const { delivery_methods_supported: methods, default_subjects } = metadata
  return found(
    methods === undefined || methods.includes(deliveryMethods[delivery])
      ? undefined
      : warning('signals.delivery', `the transmitter does not list ${deliveryMethods[delivery]} (${delivery})`, {
          why: noEvents,
          todo: `set provider.signals.delivery to a method that it lists: ${methods.join(', ')}`,
        }),
    stream === 'managed' && default_subjects === 'NONE'
      ? warning('signals.subjects', 'a new stream has no people (default_subjects is NONE)', {
          why: 'there are events only about people that were added to the stream, which the gateway does not do',
          todo: 'set the default of the stream or of the client to ALL at the transmitter',
        })
      : undefined,
  )
}

function streamFindings(
  stream: NonNullable<TransmitterFacts['stream']>,
  signals: SignalsConfig,
  receiverUrl: string,
): Finding[] {
  if (stream === 'none')
    return [
      ok('signals.credentials', 'the transmitter accepts the credentials'),
      warning('signals.stream', 'there is no stream of this gateway yet', {
        why: noEvents,
        todo: 'start the gateway, which makes the stream; if it runs, read signals.unavailable in its log',
      }),
    ]
  if ('why' in stream) return [failureFinding(stream)]
  const { stream_id, status } = stream
  return [
    ok('signals.credentials', 'the transmitter accepts the credentials'),
    status === undefined || status === 'enabled'
      ? ok('signals.stream', `the stream ${stream_id} is enabled`)
      : fault('signals.stream', `the stream ${stream_id} is ${status}`, {
          why: noEvents,
          todo:
            status === 'paused'
              ? 'the gateway enables it within an hour, and when it starts'
              : 'enable it at the transmitter: the gateway does not, because somebody may have disabled it there',
        }),
    ...mismatches(stream, signals, receiverUrl),
  ]
}

function mismatches(stream: Stream, { delivery, audience, events }: SignalsConfig, receiverUrl: string): Finding[] {
  const { method, endpoint_url, aud, events_delivered } = stream
  const isOther = method !== deliveryMethods[delivery] || (delivery === 'push' && endpoint_url !== receiverUrl)
  const used = Object.entries(events).flatMap(([name, action]) => (action === 'ignore' ? [] : [name]))
  const delivered = events_delivered?.map((type) => type.slice(type.lastIndexOf('/') + 1))
  const missing = delivered === undefined ? [] : used.filter((name) => !delivered.includes(name))
  const what = `the transmitter does not deliver ${missing.join(', ')}`
  const remedy = { why: 'these events have no effect', todo: 'enable them at the transmitter, if it has them' }
  return found(
    isOther
      ? warning('signals.delivery', `the stream has the delivery ${method ?? 'none'} to ${endpoint_url ?? 'no URL'}`, {
          why: 'the running gateway has another configuration, or it has not changed the stream yet',
          todo: 'start or reload the gateway, which changes the stream',
        })
      : undefined,
    aud.length === 0 || aud.some((value) => audience.includes(value))
      ? undefined
      : fault('signals.audience', `the events are for ${aud.join(', ')}`, {
          why: 'the gateway refuses each of them',
          todo: `set provider.signals.audience: [${aud.join(', ')}]`,
        }),
    missing.length === 0
      ? undefined
      : missing.length < used.length
        ? ok('signals.events', what)
        : warning('signals.events', what, remedy),
  )
}

function pollFinding(poll: NonNullable<TransmitterFacts['poll']>): Finding {
  if (poll === 'accepted') return ok('signals.poll', 'the transmitter accepts polls with the credentials')
  return failureFinding(poll)
}

function failureFinding({ why, isRefused }: StreamFailure): Finding {
  return fault(isRefused ? 'signals.credentials' : 'signals.stream', `the stream cannot be used: ${why}`, {
    why: noEvents,
    todo: isRefused
      ? 'check provider.signals.authorization, and the rights and scopes of the client at the transmitter'
      : 'check the transmitter, provider.signals.poll_url and provider.signals.authorization',
  })
}
