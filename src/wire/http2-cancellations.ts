import type { Http2Session, Http2Stream } from 'node:http2'

/**
 * How many streams of a connection may be cancelled. It is far below the limit of Node.js, because
 * an RST_STREAM that meets a response is not seen here.
 */
const mostCancelled = 200

/**
 * Closes a connection on which many streams were cancelled, once its other streams are complete
 * (RFC 9113 §10.5). It does not matter which side sends RST_STREAM: a client can provoke it with a
 * frame that is invalid for the stream (CVE-2023-44487, CVE-2025-8671). With more than its own
 * limit of RST_STREAM, Node.js would fail all streams of a connection at once.
 */
export function replaceAfterCancellations(session: Http2Session): void {
  let cancelled = 0
  const count = () => {
    cancelled += 1
    if (cancelled === mostCancelled && !session.destroyed) session.close()
  }
  session.on('stream', (stream: Http2Stream) => {
    if (stream.aborted) count()
    else stream.on('aborted', count)
  })
}
