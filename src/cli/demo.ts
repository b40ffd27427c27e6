import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { OperatorError } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import type { CommandInput } from './command.ts'
import { loadServableOrReport } from './load.ts'
import { serve, serveAlone } from './run.ts'

/**
 * `gatehouse demo`: runs the gateway of a file, with a demo provider and a demo application at the
 * addresses that the file names. A program that listens at the address of the application takes its
 * place.
 */
export async function demo(given: CommandInput): Promise<number> {
  const { startDemo } = await loadDemo()
  const input = { ...given, env: { DEMO_CLIENT_SECRET: randomToken(24), ...given.env } }
  const loaded = loadServableOrReport(input)
  if (loaded === undefined) return 1
  const { config, files } = loaded
  const options = demoOptions(config)
  return serve(config, input, async (parts) => {
    const servers = await startDemo(options)
    const needRestart = (next: GatewayConfig) => (isDeepStrictEqual(demoOptions(next), options) ? [] : [demoServers])
    const stop = await serveAlone(config, input, { ...parts, files, needRestart })
    input.out(welcome(config, servers.upstream === undefined))
    return async () => {
      await stop()
      await servers.close()
    }
  })
}

const demoServers = 'the demo provider and the demo application'

/** The image and the npm package contain neither the demo nor the package oidc-provider. */
async function loadDemo(): Promise<typeof import('../../examples/demo/demo.ts')> {
  try {
    return await import('../../examples/demo/demo.ts')
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) throw cause
    throw new OperatorError('the demo is not part of this installation; clone the sources and run npm start', { cause })
  }
}

function demoOptions(config: GatewayConfig) {
  const [provider] = config.providers
  const issuer = new URL(provider.issuer)
  const upstream = config.upstreams.find(({ forwardAuth, respondsOnly }) => !forwardAuth && !respondsOnly)
  if (upstream === undefined) throw new OperatorError('the demo needs an upstream with a url')
  const at = (name: string) => new URL(`${provider.prefix}${name}`, config.externalUrl).href
  const { client_id, client_secret, signals } = provider
  return {
    provider: {
      issuer,
      client_id,
      client_secret,
      redirect_uris: [at('callback')],
      post_logout_redirect_uris: [at('signed-out')],
      backchannel_logout_uri: at('backchannel-logout'),
      eventReceiver: signals && {
        url: at('security-events'),
        aud: signals.audience[0] ?? client_id,
        authorization: signals.pushSecret,
      },
      host: issuer.hostname,
      port: Number(issuer.port || 80),
    },
    upstream: {
      host: upstream.url.hostname,
      port: Number(upstream.url.port || 80),
      reservedPrefix: config.reservedPrefix,
      hasSessionsPage: config.session.page,
    },
  }
}

function welcome(
  { externalUrl, providers: [provider], file, workers, admin, upstreams }: GatewayConfig,
  isOwnApplication: boolean,
): string {
  const alone = workers > 1 ? ` The demo is one process; gatehouse run starts ${workers} workers with this file.` : ''
  const page =
    admin?.page === undefined
      ? ''
      : `\n    or     http://${admin.host.includes(':') ? `[${admin.host}]` : admin.host}:${admin.port}        the administration page: who is signed in`
  return `
  Gatehouse is running with ${file}.

    open   ${externalUrl.origin}        ${isOwnApplication ? `your application at ${upstreams[0]?.url.origin}, which was running before,` : 'the application,'} behind the sign-in
    then   ${provider.issuer}        the provider: end a session or disable an account there, and watch the application${page}

  The gateway applies changes of the file within seconds. Stop it with Ctrl+C.${alone}
`
}
