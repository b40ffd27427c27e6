import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { after, test } from 'node:test'
import { linksOf, pages } from '../docs/markdown.ts'
import { Browser } from '../support/browser.ts'
import { root, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const npm = (args: readonly string[]) => execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' })

// The text before the brackets comes from the build script.
const said = npm(['pack', '--json', '--loglevel=error', '--pack-destination', folder])
const [packed] = JSON.parse(said.slice(said.search(/^\[/m))) as [Packed]
const paths = packed.files.map(({ path }) => path)
npm(['install', '--global', '--prefix', folder, '--offline', '--loglevel=error', join(folder, packed.filename)])
const program = [join(folder, 'bin', 'gatehouse')] as const

test('The package holds the built gateway, schemas, examples and documentation, and no development files', () => {
  for (const path of ['README.md', 'LICENSE', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'gateway.example.yaml'])
    assert.ok(paths.includes(path), path)
  for (const name of ['dist/main.js', 'schemas/gateway.schema.json', 'docs/configuration.md', 'examples/'])
    assert.ok(
      paths.some((path) => path.startsWith(name)),
      name,
    )
  const wanted =
    /^(?:dist|schemas|charts|examples|docs)\/|^(?:(?:src|test|bench)\/README|bench\/HISTORY)\.md$|^[A-Z_]+(?:\.md)?$|^(?:package\.json|gateway\.example\.yaml)$/
  assert.deepEqual(
    paths.filter((path) => !wanted.test(path) || /^dist\/demo\/|\.map$|\.tsx?$|\.tgz$/.test(path)),
    [],
  )
})

test('Links of its pages lead to files in the package, except for the tests that they name', () => {
  const held = (target: string) =>
    paths.some((path) => path === target || path.startsWith(`${target.replace(/\/$/, '')}/`))
  const dead = pages
    .filter(({ path }) => paths.includes(path))
    .flatMap((page) => linksOf(page).map((target) => ({ page: page.path, target })))
    .filter(({ target }) => !/^(?:[a-z][a-z+.-]*:|#)/i.test(target))
    .map(({ page, target }) => `${page}: ${posix.join(posix.dirname(page), target.split('#')[0] ?? '')}`)
    .filter((link) => !held(link.slice(link.indexOf(': ') + 2)))

  // These pages say that the tests are in the repository.
  const namingTests = ['docs/security.md', 'docs/first-mistakes.md', 'docs/threat-model.md', 'docs/conformance.md']
  assert.deepEqual(
    dead.filter((link) => !namingTests.some((page) => link.startsWith(`${page}: test/`))),
    [],
  )
  for (const page of namingTests)
    assert.match(readFileSync(join(root, page), 'utf8'), /npm\s+package\s+does\s+not\s+contain/)
})

test('The package needs no other package, and brings the licenses of those in the program', () => {
  assert.deepEqual(
    paths.filter((path) => path.includes('node_modules')),
    [],
  )
  for (const name of ['LICENSES.txt', 'gatehouse.cdx.json']) assert.ok(paths.includes(`dist/${name}`), name)
})

test('The command installs without a network, checks and serves, and stops on SIGTERM', async (t) => {
  const around = await prepareGateway(t)
  // The command runs with the Node.js of the PATH.
  const env = { ...around.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
  const options = { program, cwd: folder, env }

  const check = startCommand(t, ['check', '--config', around.file], options)
  const gateway = startCommand(t, ['run', '--config', around.file], options)
  await gateway.said('gatehouse is ready')
  const page = await new Browser('jane').get(`${around.url}/`)
  gateway.child.kill('SIGTERM')

  assert.deepEqual([await check.ended, page.body, await gateway.ended], [0, 'for jane', 0])
  assert.match(check.out(), /gateway\.yaml is valid/)
})
