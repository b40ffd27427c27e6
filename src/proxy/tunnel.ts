import type { Socket } from 'node:net'
import type { SessionKey } from '../core/names.ts'
import type { ProxyParts } from './parts.ts'

/** How long what is left in one direction may take to get out when the other side is gone. */
const flushMs = 30_000
const keepAliveMs = 60_000
const activityEveryMs = 5_000

export type TunnelParts = Pick<ProxyParts, 'live' | 'onActivity'>

/** Joins two sockets until one of them ends, or the session does. What the bytes mean is none of our business. */
export function tunnel(client: Socket, upstream: Socket, session: SessionKey | undefined, parts: TunnelParts): void {
  const release = parts.live.open(session, () => cut(client, upstream))
  // A tunnel may be silent for ever, so only TCP can tell a peer that vanished.
  client.setKeepAlive(true, keepAliveMs)
  client.setNoDelay(true)
  client.on('error', ignore)
  upstream.on('error', ignore)
  client.once('close', () => {
    release()
    flushAndClose(upstream)
  })
  upstream.once('close', () => flushAndClose(client))
  // The socket may be gone since the upstream was asked, and tells nobody twice.
  if (client.destroyed || upstream.destroyed) {
    release()
    cut(client, upstream)
    return
  }
  if (session !== undefined) reportActivity(client, session, parts)
  client.pipe(upstream)
  upstream.pipe(client)
}

/** What the person's side sends is activity, as a request is: whoever works over a WebSocket alone is not idle. */
function reportActivity(client: Socket, session: SessionKey, parts: TunnelParts): void {
  let reportedAt = -Infinity
  client.on('data', () => {
    const now = performance.now()
    if (now - reportedAt < activityEveryMs) return
    reportedAt = now
    parts.onActivity(session)
  })
}

/** The one place where a tunnel is ended by the gateway: here a close frame can be sent first, one day. */
function cut(client: Socket, upstream: Socket): void {
  client.destroy()
  upstream.destroy()
}

function flushAndClose(socket: Socket): void {
  if (socket.destroyed) return
  socket.setTimeout(flushMs, () => socket.destroy())
  socket.destroySoon()
}

function ignore(): void {}
