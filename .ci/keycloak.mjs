// `npm run test:keycloak`: the journeys of test/keycloak against a real Keycloak. Needs Java 17 or
// newer, and Maven for the first run: Maven downloads Keycloak's distribution (140 MB) from the
// repository that it is configured with.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { ensurePackages, root } from './prepare.mjs'

const version = process.env['KEYCLOAK_VERSION'] ?? '26.7.3'
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gatehouse')
const home = process.env['KEYCLOAK_HOME'] ?? join(cache, `keycloak-${version}`)

ensurePackages()
if (!existsSync(join(home, 'bin', 'kc.sh'))) download()
const files = [join('test', 'keycloak', 'journeys.ts')]
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=600000']
const tests = spawn(process.execPath, [...options, ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, KEYCLOAK_HOME: home },
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))

function download() {
  mkdirSync(cache, { recursive: true })
  const artifact = `org.keycloak:keycloak-quarkus-dist:${version}:tar.gz`
  run('mvn', ['-B', '-q', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${cache}`])
  run('tar', ['-xzf', join(cache, `keycloak-quarkus-dist-${version}.tar.gz`), '-C', cache])
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  if (status === 0) return
  process.stderr.write(`${program} failed${error === undefined ? '' : `: ${error.message}`}\n`)
  process.exit(1)
}
