/**
 * Calls back after everything that has arrived on the sockets is read. Node.js runs the timers that
 * are due before it reads. When the process was busy for longer than a timeout, the response may
 * have arrived in time. The second round is for TLS.
 */
export function afterSocketsAreRead(callback: () => void): void {
  setImmediate(() => setImmediate(callback))
}
