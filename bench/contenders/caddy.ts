import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find, folderFor, versionOf, type Bed } from '../bed.ts'
import { startProgram, untilListening } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'
import { goEnvironment, goRunsWith } from './go-program.ts'

/** Caddy as a plain proxy: no sign-in, three fixed headers, no access log. */
export const caddy: Contender = {
  name: 'caddy',
  title: 'Caddy, no sign-in',
  signsIn: false,
  can: new Set(['tls', 'http2', 'websockets']),
  missing: () => (find('caddy') ? undefined : 'caddy is not installed'),
  version: () => versionOf('caddy', ['version'], /^(\S+)/),
  runsWith: goRunsWith,
  start: run,
}

async function run(bed: Bed, { port, cpus, tls }: Setting): Promise<Listening> {
  const folder = folderFor(bed, `caddy-${port}`)
  const file = join(folder, 'Caddyfile')
  writeFileSync(
    file,
    `{
  admin off
  auto_https off
}
${tls ? 'https' : 'http'}://127.0.0.1:${port} {
  bind 127.0.0.1
  ${tls ? `tls ${tls.cert} ${tls.key}` : ''}
  reverse_proxy ${bed.upstream} {
    header_up X-Auth-Email alice@idp.example
    header_up X-Auth-Sub alice
    header_up X-Auth-Name "Alice Example"
  }
}
`,
  )
  const program = startProgram({
    command: find('caddy') as string,
    args: ['run', '--config', file, '--adapter', 'caddyfile'],
    cpus,
    env: { ...goEnvironment({ cpus }), XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    logFile: join(folder, 'output.log'),
  })
  await untilListening(port)
  return program
}
