// The npm package: the files that npm would pack, without the times, modes and compression that
// depend on the machine.
import { cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filesBelow, gzip, normalize, tarOf, write } from './archive.mjs'
import { runTool } from './run-tool.mjs'

/**
 * Writes `OWNER-gatehouse-VERSION.tgz`, the name that `npm pack` gives to a package with a scope.
 */
export function writeNpmPackage({ identity, source, program, work, out, epoch }) {
  const whole = join(work, 'npm', 'whole')
  const stage = join(work, 'npm', 'stage')
  cpSync(source, whole, { recursive: true })
  cpSync(program, join(whole, 'dist'), { recursive: true })
  const [packed] = JSON.parse(
    runTool('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'], { cwd: whole }),
  )
  for (const { path } of packed.files) {
    const file = join(stage, 'package', path)
    mkdirSync(dirname(file), { recursive: true })
    cpSync(join(whole, path), file)
  }
  normalize(stage, epoch)
  const name = `${identity.owner}-gatehouse-${identity.version}.tgz`
  write(join(out, name), gzip(tarOf(stage, filesBelow(stage), epoch), epoch))
}
