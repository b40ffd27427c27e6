import type { GatewayConfig } from '../config/model.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { createLog } from '../observe/log.ts'
import { startGateway } from '../server/gateway.ts'
import type { CommandInput } from './command.ts'
import { loadOrSay } from './load.ts'
import { formatFor, stopSignals } from './run.ts'

/** `gatehouse demo`: the gateway of a file, between a toy provider and a toy application at the addresses that the file names. */
export async function demo(input: CommandInput): Promise<number> {
  const config = loadOrSay({ ...input, env: { DEMO_CLIENT_SECRET: randomToken(24), ...input.env } })
  if (config === undefined) return 1
  // The image has no demo, and no provider package either.
  const { startDemo } = await import('../demo/demo.ts').catch((cause: unknown) => {
    throw new OperatorError(`the demo is not part of this installation: ${reason(cause)}`, { cause })
  })
  const signals = stopSignals()
  const toys = await startDemo(toysOf(config))
  try {
    const gateway = await startGateway(config, {
      log: createLog({ level: 'warn', format: formatFor('auto', process.stdout.isTTY, input.env) }),
    })
    input.out(welcome(config))
    await signals.first
    await Promise.race([gateway.close(), signals.again])
  } finally {
    await Promise.race([toys.close(), signals.again])
  }
  return 0
}

function toysOf(config: GatewayConfig) {
  const issuer = new URL(config.provider.issuer)
  const [upstream] = config.upstreams
  if (upstream === undefined) throw new OperatorError('the demo needs an upstream')
  const at = (name: string) => new URL(`${config.reservedPrefix}${name}`, config.externalUrl).href
  const { client_id, client_secret } = config.provider
  return {
    provider: {
      issuer,
      client_id,
      client_secret,
      redirect_uris: [at('callback')],
      post_logout_redirect_uris: [at('signed-out')],
      backchannel_logout_uri: at('backchannel-logout'),
      host: issuer.hostname,
      port: Number(issuer.port || 80),
    },
    upstream: { host: upstream.url.hostname, port: Number(upstream.url.port || 80) },
  }
}

function welcome({ externalUrl, provider, file }: GatewayConfig): string {
  return `
  Gatehouse is running with ${file}.

    open   ${externalUrl.origin}        the application, behind the sign-in
    then   ${provider.issuer}        the provider: end a session there and watch the application

  Stop it with Ctrl+C.
`
}
