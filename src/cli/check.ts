import { failingTests } from './embedded-tests.ts'
import { loadOrSay } from './load.ts'
import type { CommandInput } from './main.ts'

/** `gatehouse check`: everything that is wrong with the file, then its own tests; and what the provider has to know of us. */
export async function check(input: CommandInput): Promise<number> {
  const config = loadOrSay(input)
  if (config === undefined) return 1
  const failures = failingTests(config)
  if (failures.length > 0) {
    input.err(`${failures.join('\n')}\n`)
    return 1
  }
  const tests = config.upstreams.reduce((count, upstream) => count + upstream.tests.length, 0)
  input.out(
    `${input.file} is good${tests > 0 ? `; its ${tests} tests pass` : ''}.\n\nTo be registered at ${config.provider.issuer} for the client ${config.provider.client_id}:\n`,
  )
  for (const origin of new Set(
    [config.externalUrl, ...config.upstreams.map(({ externalUrl }) => externalUrl)].map((url) => url.origin),
  ))
    input.out(
      `  redirect URI               ${origin}${config.reservedPrefix}callback\n` +
        `  post-logout redirect URI   ${origin}${config.reservedPrefix}signed-out\n`,
    )
  input.out(`  back-channel logout URI    ${config.externalUrl.origin}${config.reservedPrefix}backchannel-logout\n`)
  return 0
}
