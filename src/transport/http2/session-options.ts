import type { ClientSessionOptions } from 'node:http2'
import { maxHeadBytes } from '../http1/response-head.ts'

/**
 * The bounds of Node.js for a connection to an upstream (RFC 9113 §10.5). Some equal the defaults
 * of Node.js 24, and are here so that another default changes nothing.
 */
export const sessionOptions: ClientSessionOptions = {
  settings: {
    enablePush: false,
    headerTableSize: 4096,
    // How much content of a response waits for a client that is behind, in bytes.
    initialWindowSize: 64 * 1024 - 1,
    maxFrameSize: 16 * 1024,
    maxHeaderListSize: maxHeadBytes,
  },
  // The requests of different people share a connection. Without a table, the size of one does not
  // show what is in another one (RFC 7541 §7.1).
  maxDeflateDynamicTableSize: 0,
  maxHeaderListPairs: 1024,
  maxSendHeaderBlockLength: 256 * 1024,
  // The memory of nghttp2 for the connection, in MB.
  maxSessionMemory: 16,
  maxSettings: 32,
  maxOutstandingPings: 10,
  maxReservedRemoteStreams: 0,
}
