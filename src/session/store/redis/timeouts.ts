/**
 * Calls back after the data that has arrived on the sockets was read. Node.js runs due timers
 * before it reads. So when the process was busy for longer than a timeout, a reply that arrived in
 * time may still be unread. TLS needs a second round of the event loop.
 */
export function afterSocketsAreRead(callback: () => void): void {
  setImmediate(() => setImmediate(callback))
}
