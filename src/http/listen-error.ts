import type { Address } from '../config/model/address.ts'
import { reason } from '../core/errors.ts'

/**
 * Explains why the gateway cannot listen on an address, and what to do.
 * @param setting the configuration key of the address
 */
export function listenError(cause: NodeJS.ErrnoException, { host, port }: Address, setting: string): string {
  const where = `${host}:${port}`
  if (cause.code === 'EADDRINUSE')
    return `port ${port} of ${host} is in use: stop the other program, or choose another port in ${setting}`
  if (cause.code === 'EACCES')
    return `no permission to listen on ${where}: ports below 1024 need a privilege; choose port 1024 or higher in ${setting}`
  if (cause.code === 'EADDRNOTAVAIL' || cause.code === 'ENOTFOUND')
    return `${where} is not an address of this machine: correct ${setting}`
  return `the gateway cannot listen on ${where}: ${reason(cause)}`
}
