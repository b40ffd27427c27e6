import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find, folderFor, versionOf, type Bed } from '../bed.ts'
import { startProgram, untilListening } from '../process.ts'
import type { Contender, Listening, Setting } from './contender.ts'

/** HAProxy as a plain proxy: no sign-in, three fixed headers, no log. */
export const haproxy: Contender = {
  name: 'haproxy',
  title: 'HAProxy, no sign-in',
  signsIn: false,
  can: new Set(['tls', 'http2', 'websockets']),
  missing: () => (find('haproxy') ? undefined : 'haproxy is not installed'),
  version: () => versionOf('haproxy', ['-v'], /version (\S+)/),
  runsWith: () => '`nbthread 1`',
  start: run,
}

async function run(bed: Bed, { port, cpus, tls }: Setting): Promise<Listening> {
  const folder = folderFor(bed, `haproxy-${port}`)
  const file = join(folder, 'haproxy.cfg')
  const bundle = join(folder, 'bundle.pem')
  if (tls) writeFileSync(bundle, readFileSync(tls.cert, 'utf8') + readFileSync(tls.key, 'utf8'), { mode: 0o600 })
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout tunnel 1h
  option http-keep-alive
frontend front
  bind 127.0.0.1:${port} backlog 4096${tls ? ` ssl crt ${bundle} alpn h2,http/1.1` : ''}
  default_backend application
backend application
  http-reuse always
  option forwardfor
  http-request set-header X-Auth-Email alice@idp.example
  http-request set-header X-Auth-Sub alice
  http-request set-header X-Auth-Name "Alice Example"
  server upstream ${bed.upstream}
`,
  )
  const program = startProgram({
    command: find('haproxy') as string,
    args: ['-db', '-f', file],
    cpus,
    logFile: join(folder, 'output.log'),
  })
  await untilListening(port)
  return program
}
