// The Debian package: the program, its unit, a configuration to edit, and no network at
// installation.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'
import { filesBelow, gzip, normalize, write } from './archive.mjs'
import { runTool } from './run-tool.mjs'

const scripts = ['postinst', 'prerm', 'postrm']

const maintainer = ({ owner, contact = `${owner}@users.noreply.github.com` }) => `The Gatehouse project <${contact}>`

const control = ({ version, url, nodeVersion, ...identity }) => `Package: gatehouse
Version: ${version}
Architecture: all
Maintainer: ${maintainer(identity)}
Depends: nodejs (>= ${nodeVersion})
Recommends: redis-server
Section: httpd
Priority: optional
Homepage: ${url}
Description: authentication gateway and reverse proxy for OpenID Connect
 People sign in once at an OpenID Provider. The application gets their
 identity in headers, and a logout ends the session everywhere.
`

const copyright = ({ url }) => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Gatehouse
Source: ${url}

Files: *
Copyright: 2026 The Gatehouse project and its contributors
License: Apache-2.0
 The text is in /usr/share/common-licenses/Apache-2.0. The licenses of the packages in the program are in
 /usr/lib/gatehouse/dist/LICENSES.txt.
`

const changelog = ({ version, ...identity }, epoch) => `gatehouse (${version}) stable; urgency=medium

  * See /usr/share/doc/gatehouse/CHANGELOG.md.gz.

 -- ${maintainer(identity)}  ${new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')}
`

/** The unit of examples/systemd with the path of this package. */
function unit(source) {
  const text = readFileSync(join(source, 'examples', 'systemd', 'gatehouse.service'), 'utf8')
  const path = '/opt/gatehouse/bin/gatehouse'
  if (!text.includes(path)) throw new Error(`examples/systemd/gatehouse.service does not start ${path}.`)
  return text.replaceAll(path, '/usr/bin/gatehouse')
}

/** Where each shell looks for completions. */
const completions = [
  ['bash', 'bash-completion/completions/gatehouse'],
  ['zsh', 'zsh/vendor-completions/_gatehouse'],
  ['fish', 'fish/vendor_completions.d/gatehouse.fish'],
]

/** What the program prints for `gatehouse completion NAME`. */
function printed(program, name) {
  return execFileSync(process.execPath, [join(program, 'main.js'), 'completion', name], { encoding: 'utf8' })
}

/** The Node.js of the package that this one depends on, and not another one of the `PATH`. */
function useNodeOfPackage(file) {
  const text = readFileSync(file, 'utf8')
  const firstLine = '#!/usr/bin/env node\n'
  if (!text.startsWith(firstLine)) throw new Error(`${file} does not begin with ${firstLine}`)
  writeFileSync(file, text.replace(firstLine, '#!/usr/bin/node\n'))
}

/** Writes `gatehouse_VERSION_all.deb`. */
export function writeDebianPackage({ identity, source, program, work, out, epoch }) {
  const stage = join(work, 'debian')
  const at = (...parts) => join(stage, ...parts)
  for (const name of ['package.json', 'schemas', 'gateway.example.yaml'])
    cpSync(join(source, name), at('usr/lib/gatehouse', name), { recursive: true })
  cpSync(program, at('usr/lib/gatehouse/dist'), { recursive: true })
  mkdirSync(at('usr/bin'), { recursive: true })
  symlinkSync('../lib/gatehouse/dist/main.js', at('usr/bin/gatehouse'))
  useNodeOfPackage(at('usr/lib/gatehouse/dist/main.js'))
  for (const [name, file] of completions) write(at('usr/share', file), printed(program, name))
  write(at('usr/share/man/man1/gatehouse.1.gz'), gzip(Buffer.from(printed(program, 'man')), epoch))
  write(at('usr/lib/systemd/system/gatehouse.service'), unit(source))
  write(at('usr/lib/systemd/system/gatehouse.socket'), readFileSync(join(source, 'examples/systemd/gatehouse.socket')))
  write(at('etc/gatehouse/gateway.yaml'), readFileSync(join(source, 'examples/systemd/gateway.yaml')))
  mkdirSync(at('etc/gatehouse/secrets'))
  write(at('usr/share/doc/gatehouse/copyright'), copyright(identity))
  write(at('usr/share/doc/gatehouse/changelog.gz'), gzip(Buffer.from(changelog(identity, epoch)), epoch))
  write(at('usr/share/doc/gatehouse/CHANGELOG.md.gz'), gzip(readFileSync(join(source, 'CHANGELOG.md')), epoch))

  const sums = filesBelow(stage).map(
    (name) =>
      `${createHash('md5')
        .update(readFileSync(at(name)))
        .digest('hex')}  ${name}\n`,
  )
  write(at('DEBIAN/md5sums'), sums.join(''))
  write(at('DEBIAN/control'), control(identity))
  write(at('DEBIAN/conffiles'), '/etc/gatehouse/gateway.yaml\n')
  for (const name of scripts) cpSync(join(root, '.ci/release/debian', name), at('DEBIAN', name))
  normalize(stage, epoch)
  for (const name of scripts) chmodSync(at('DEBIAN', name), 0o755)
  // Only root reads the secrets; systemd passes them to the service.
  chmodSync(at('etc/gatehouse/secrets'), 0o700)
  // One thread, because the number of threads changes the bytes.
  const options = ['--root-owner-group', '-Zxz', '--threads-max=1', '--build']
  mkdirSync(out, { recursive: true })
  runTool('dpkg-deb', [...options, stage, join(out, `gatehouse_${identity.version}_all.deb`)], { epoch })
}
