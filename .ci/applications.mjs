// `npm run test:applications [-- NAME …]`: real applications behind a gateway, each as its page in
// docs/applications says. Outside `npm test`, because it downloads the applications: packages of
// Debian (as root), PyPI and npm. What is missing is said, and the other applications are tested.
// With PROVIDER=keycloak, people sign in at a real Keycloak instead of the demo provider.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensureKeycloak, ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

ensurePackages()
ensurePrograms()
ensureBuild()
const folder = join('test', 'applications')
const known = readdirSync(join(root, folder))
  .filter((name) => name.endsWith('.journey.ts'))
  .map((name) => name.replace('.journey.ts', ''))
const named = process.argv.slice(2)
const unknown = named.find((name) => !known.includes(name))
if (unknown !== undefined) stop(`There is no application "${unknown}". Known: ${known.join(', ')}.`)
const provider = process.env['PROVIDER'] ?? 'demo'
if (!['demo', 'keycloak'].includes(provider)) stop(`PROVIDER=${provider}: must be demo or keycloak.`)
const env = { ...process.env, APPLICATIONS: (named.length > 0 ? named : known).join(',') }
if (provider === 'keycloak') env.KEYCLOAK_HOME = ensureKeycloak()
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=3600000']
const tests = spawn(process.execPath, [...options, join(folder, 'all.ts')], { cwd: root, stdio: 'inherit', env })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))
