import type { ProviderConfig, SignalsConfig } from '../config/model/provider.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'
import { type ProbeFailure, readKeys } from './examine.ts'
import { discover } from './metadata.ts'
import { createOutbound } from './outbound.ts'
import { findStream, type Stream, StreamClient, TransmitterRefusal } from './stream-client.ts'
import { requestClientToken, TransmitterCredentials } from './transmitter-credentials.ts'
import { Transmitter, type TransmitterMetadata } from './transmitter.ts'

type Keys = readonly Readonly<Record<string, unknown>>[]

/** What the transmitter of security events reports, and how it treats this receiver. */
export interface TransmitterFacts {
  readonly metadata: TransmitterMetadata | ProbeFailure
  readonly keys?: Keys | ProbeFailure
  /** With its status, if the transmitter says it. Absent without requests about streams. */
  readonly stream?: (Stream & { readonly status: string | undefined }) | 'none' | StreamFailure
  /** Whether the events of an existing stream can be polled. */
  readonly poll?: 'accepted' | StreamFailure
}

/** `isRefused`: the transmitter does not accept the credentials, or their rights. */
export interface StreamFailure extends ProbeFailure {
  readonly isRefused: boolean
}

/**
 * Examines the transmitter of security events, and takes no event: a poll with `maxEvents: 0` shows
 * whether it is accepted (RFC 8936 §2.2). Never rejects.
 */
export async function examineTransmitter(
  config: ProviderConfig & { readonly signals: SignalsConfig },
  receiverUrl: string,
): Promise<TransmitterFacts> {
  const { signals } = config
  const outbound = createOutbound(config)
  try {
    const transmitter = new Transmitter(signals, { outbound, clock: systemClock, log: silent })
    const metadata = await transmitter.metadata().catch(failure)
    if ('why' in metadata) return { metadata }
    const keys = await readKeys(metadata.jwks_uri, outbound)
    const facts = { metadata, keys: 'why' in keys ? keys : keys.value }
    if (signals.authorization === undefined) return facts
    const credentials = new TransmitterCredentials(signals.authorization, {
      clientToken: async (scopes) => requestClientToken((await discover(config, outbound)).configuration, scopes),
      clock: systemClock,
    })
    const streams = new StreamClient({ transmitter, credentials, outbound })
    if (signals.stream === 'managed') return { ...facts, stream: await readOwn(streams, receiverUrl) }
    return { ...facts, poll: await tryPoll(streams, signals.pollUrl ?? '', config.timeoutMs) }
  } finally {
    await outbound.close()
  }
}

async function readOwn(streams: StreamClient, receiverUrl: string): Promise<NonNullable<TransmitterFacts['stream']>> {
  try {
    const found = findStream(await streams.streams(), { receiverUrl })
    return found === undefined ? 'none' : { ...found, status: await streams.status(found.stream_id) }
  } catch (error) {
    return streamFailure(error)
  }
}

async function tryPoll(streams: StreamClient, url: string, timeoutMs: number): Promise<'accepted' | StreamFailure> {
  try {
    const { signal } = new AbortController()
    const response = await streams.poll(url, { maxEvents: 0, returnImmediately: true }, { timeoutMs, signal })
    return response === undefined ? { why: `no response within ${timeoutMs} ms`, isRefused: false } : 'accepted'
  } catch (error) {
    return streamFailure(error)
  }
}

function failure(error: unknown): ProbeFailure {
  return { why: error instanceof GatewayError ? error.message : reason(error) }
}

function streamFailure(error: unknown): StreamFailure {
  const isRefused = error instanceof TransmitterRefusal && [401, 403].includes(error.statusOfResponse)
  return { ...failure(error), isRefused }
}

const nothing = () => {}
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, announce: nothing }
