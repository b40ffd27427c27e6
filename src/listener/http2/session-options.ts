import type { ServerOptions } from 'node:http2'
import type { LimitsConfig } from '../../config/model/gateway.ts'

/**
 * How many requests may be open on a connection. Browsers expect at least 100 (RFC 9113 §6.5.2).
 */
const maxStreams = 100
/** How much content of a request a client may send before it is read, in bytes. */
export const initialWindowBytes = 64 * 1024 - 1

/**
 * The bounds of Node.js for a connection of HTTP/2 (RFC 9113 §10.5). Some equal the defaults of
 * Node.js 24, and are here so that another default changes nothing.
 */
export function sessionOptions({
  headerSizeBytes,
  headerCount,
}: Pick<LimitsConfig, 'headerSizeBytes' | 'headerCount'>): ServerOptions {
  return {
    // Beyond these two, the stream is reset. The gateway itself responds to a head beyond
    // `header_size` and `header_count`, and browsers send each cookie as a field of its own.
    maxHeaderListPairs: headerCount + maxCookieParts,
    settings: {
      maxHeaderListSize: headerSizeBytes * 2 + maxCookieParts * pairBytes,
      maxConcurrentStreams: maxStreams,
      initialWindowSize: initialWindowBytes,
      headerTableSize: 4096,
      maxFrameSize: 16 * 1024,
      enablePush: false,
      enableConnectProtocol: true,
    },
    // A response has the repeated fields of the application. Node.js 22 does not have this option.
    strictSingleValueFields: false,
    // The memory of nghttp2 for the connection, in MB.
    maxSessionMemory: 10,
    // Frames that are invalid, or empty without an end.
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    // Settings in one frame.
    maxSettings: 32,
    maxOutstandingPings: 10,
    maxDeflateDynamicTableSize: 4096,
    maxSendHeaderBlockLength: 256 * 1024,
    peerMaxConcurrentStreams: 0,
    // RST_STREAM of the client: at once, and then for each second (CVE-2023-44487).
    streamResetBurst: 1000,
    streamResetRate: 33,
  }
}

/** The cookies of a browser for one site. */
const maxCookieParts = 400
/** What a field counts beside its name and value (RFC 9113 §6.5.2). */
const pairBytes = 32
