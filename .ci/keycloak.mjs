// `npm run test:keycloak`: the journeys of test/keycloak against a real Keycloak, which needs Java
// 17 or newer.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureKeycloak, ensurePackages, root } from './prepare.mjs'
import { verdicts } from './verdict.mjs'

ensurePackages()
const home = ensureKeycloak()
const files = [join('test', 'keycloak', 'journeys.ts')]
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=600000']
const { env, exitCode } = verdicts()
const tests = spawn(process.execPath, [...options, ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ...env, KEYCLOAK_HOME: home },
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(exitCode(code)))
