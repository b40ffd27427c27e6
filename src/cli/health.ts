import type { Address, GatewayConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'
import type { CommandInput } from './command.ts'
import { loadOrSay } from './load.ts'

const limitMs = 4000

/**
 * `gatehouse health`: for a container's health check. Asks the administration address for `/live`;
 * without one, whether the gateway answers at all.
 */
export async function health(input: CommandInput): Promise<number> {
  const config = loadOrSay({ ...input, err: () => {} })
  if (config === undefined) {
    input.err(`gatehouse: ${input.file} is not good; see gatehouse check\n`)
    return 1
  }
  const { url, isWell } = whereToAsk(config)
  try {
    const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(limitMs) })
    if (isWell(answer.status)) return 0
    input.err(`gatehouse: ${url} answered with status ${answer.status}\n`)
  } catch (error) {
    // Whoever shows a certificate for other names than "localhost" is there.
    if (isAboutCertificate(error)) return 0
    input.err(`gatehouse: ${url} does not answer: ${reason(error)}\n`)
  }
  return 1
}

function whereToAsk(config: GatewayConfig): { readonly url: string; readonly isWell: (status: number) => boolean } {
  if (config.admin !== undefined)
    return { url: `http://${local(config.admin)}/live`, isWell: (status) => status === 200 }
  const scheme = config.listen.tls === undefined ? 'http' : 'https'
  return { url: `${scheme}://${local(config.listen)}${config.reservedPrefix}session`, isWell: (status) => status < 500 }
}

function isAboutCertificate(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return /CERT|^UNABLE_TO_VERIFY_/.test(code ?? '')
}

/** Whoever listens on all addresses is asked on loopback. */
function local({ host, port }: Address): string {
  if (host === '0.0.0.0') return `127.0.0.1:${port}`
  if (host === '::') return `[::1]:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
