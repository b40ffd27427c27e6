// `npm run bench [-- --only SCENARIO --contenders A,B --node PATH]`: what the way through the
// gateway costs, beside others. `npm run bench:flood [-- --seconds N --rate N --only WORDS]`: what
// the signed-in notice of a flood. `npm run bench:revocation [-- --rounds N]`: how long a logout
// token takes to end everything. `npm run profile [-- --out FILE --node PATH]`: a CPU profile of
// what a signed-in request costs. `npm run bench:sessions [-- --sizes N,N]`: what a million
// sessions cost. `npm run bench:growth [-- --only CURVES --quick --write]`: how costs grow.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureBuild, ensurePackages, ensurePrograms, root } from './prepare.mjs'

const [name, ...options] = process.argv.slice(2)
ensurePackages()
const isHelp = options.includes('--help')
if (!isHelp && process.env.REDIS_SERVER === undefined) ensurePrograms(['redis-server'], [])
ensureBuild()
const args = ['--import', 'tsx', join('bench', `${name}.ts`), ...options]
process.exit(spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1)
