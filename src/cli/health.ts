import type { Address } from '../config/addresses.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { reason } from '../core/errors.ts'
import type { CommandInput } from './command.ts'
import { loadOrReport } from './load.ts'

/** How long the gateway may take to respond, in ms. */
const timeoutMs = 4000

/**
 * `gatehouse health`: a container's health check. Requests `/live` at the administration address.
 * Without that address, any response of the gateway below status 500 is healthy.
 */
export async function health(input: CommandInput): Promise<number> {
  const config = loadOrReport({ ...input, err: () => {} })
  if (config === undefined) {
    input.err(`gatehouse: ${input.file} is invalid; run gatehouse check\n`)
    return 1
  }
  const { url, isHealthy } = healthTarget(config)
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) })
    if (isHealthy(response.status)) return 0
    input.err(`gatehouse: ${url} responded with status ${response.status}\n`)
  } catch (error) {
    // A certificate error shows that the gateway responds. Its certificate is not for this address.
    if (isAboutCertificate(error)) return 0
    input.err(`gatehouse: ${url} does not respond: ${reason(error)}\n`)
  }
  return 1
}

function healthTarget(config: GatewayConfig): {
  readonly url: string
  readonly isHealthy: (status: number) => boolean
} {
  if (config.admin !== undefined)
    return { url: `http://${local(config.admin)}/live`, isHealthy: (status) => status === 200 }
  const scheme = config.listen.tls === undefined ? 'http' : 'https'
  return {
    url: `${scheme}://${local(config.listen)}${config.reservedPrefix}session`,
    isHealthy: (status) => status < 500,
  }
}

function isAboutCertificate(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return /CERT|^UNABLE_TO_VERIFY_/.test(code ?? '')
}

/** The address on this machine: loopback when the gateway listens on all addresses. */
function local({ host, port }: Address): string {
  if (host === '0.0.0.0') return `127.0.0.1:${port}`
  if (host === '::') return `[::1]:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
