import type { Address } from '../config/model.ts'
import { reason } from '../core/errors.ts'

/**
 * Says why an address cannot be listened on and what to do. `setting` is the configuration key of
 * the address.
 */
export function listenError(cause: NodeJS.ErrnoException, { host, port }: Address, setting: string): string {
  const where = `${host}:${port}`
  if (cause.code === 'EADDRINUSE')
    return `port ${port} of ${host} is taken: stop the other program, or choose another port in ${setting}`
  if (cause.code === 'EACCES')
    return `${where} may not be listened on: ports below 1024 need a privilege; choose a port above in ${setting}`
  if (cause.code === 'EADDRNOTAVAIL' || cause.code === 'ENOTFOUND')
    return `${where} is not an address of this machine; see ${setting}`
  return `${where} cannot be listened on: ${reason(cause)}`
}
