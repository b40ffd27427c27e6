// Slow: 40 s, a release is built twice
// Own process: it builds the program four times, beside other tests.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../support/command.ts'
import { until } from '../support/until.ts'

const { version } = manifest
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
after(() => rmSync(folder, { recursive: true, force: true }))
/** Programs run with the Node.js of the tests. */
const programs = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
const run = (command: string, args: readonly string[], cwd: string) =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, ...programs, ...committer },
  })
const committer = {
  GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
  GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'user.name',
  GIT_CONFIG_VALUE_0: 'Jane',
  GIT_CONFIG_KEY_1: 'user.email',
  GIT_CONFIG_VALUE_1: 'jane@example.com',
}

/** A repository with one commit: the files of this one, without its history. */
function repository(...path: string[]): string {
  const clone = join(folder, ...path)
  const names = run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], root).split('\0')
  for (const name of names.filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(clone, name)), { recursive: true })
    cpSync(join(root, name), join(clone, name))
  }
  run('cp', ['-al', join(root, 'node_modules'), join(clone, 'node_modules')], folder)
  needsNoInstallation(clone)
  run('git', ['init', '-q', '-b', 'main'], clone)
  commit(clone)
  return clone
}

/** package-lock.json is older than node_modules. */
const needsNoInstallation = (clone: string) => utimesSync(join(clone, 'package-lock.json'), 1, 1)

function commit(clone: string): void {
  run('git', ['add', '--all'], clone)
  run('git', ['commit', '-q', '-m', 'the state of the test'], clone)
}

interface Surroundings {
  readonly umask?: string
  readonly env?: Readonly<Record<string, string>>
}

function release(clone: string, args: readonly string[], { umask = '022', env }: Surroundings = {}) {
  const command = `umask ${umask}; exec "$0" .ci/release/release.mjs "$@"`
  return spawnSync('/bin/sh', ['-c', command, process.execPath, ...args], {
    cwd: clone,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
}

const one = repository('one')
const edit = (clone: string, path: string, change: (text: string) => string) =>
  writeFileSync(join(clone, path), change(readFileSync(join(clone, path), 'utf8')))

/** What the release says about a change, which is taken back afterwards. */
function refusal(change: () => void, args: readonly string[] = ['--dry-run'], around: Surroundings = {}): string {
  change()
  const { status, stdout, stderr } = release(one, args, around)
  run('git', ['reset', '-q', '--hard', 'start'], one)
  needsNoInstallation(one)
  run('git', ['clean', '-fdq'], one)
  for (const tag of run('git', ['tag', '--list', 'v*'], one).split('\n').filter(Boolean))
    run('git', ['tag', '-d', tag], one)
  assert.deepEqual([status, stdout], [1, ''], stderr)
  assert.ok(!existsSync(join(one, 'release')) && !existsSync(join(one, 'release.partial')), 'something was written')
  return stderr
}
run('git', ['tag', 'start'], one)

const committed = (path: string, change: (text: string) => string) => () => {
  edit(one, path, change)
  commit(one)
}

for (const [why, change, said] of [
  [
    'the CHANGELOG has no section for the version',
    committed('CHANGELOG.md', (text) => text.replace(`## ${version}`, '## 0.0.9')),
    new RegExp(`^error: CHANGELOG\\.md: there is no section "## ${version.replaceAll('.', '\\.')}"`, 'm'),
  ],
  [
    'the tree has changes that are not committed',
    () => edit(one, 'README.md', (text) => `${text}\n`),
    /^error: The tree has changes that are not committed: README\.md\. Commit them\.$/m,
  ],
  [
    'a later version is a tag',
    () => run('git', ['tag', '-f', 'v99.0.0'], one),
    /^error: The version goes backwards: package\.json has [\d.]+, but v99\.0\.0 is a tag\.$/m,
  ],
  [
    'the CHANGELOG has a later version',
    committed('CHANGELOG.md', (text) => text.replace('## Unreleased', '## Unreleased\n\n## 98.0.0')),
    /^error: The version goes backwards: package\.json has [\d.]+, CHANGELOG\.md has 98\.0\.0\.$/m,
  ],
  [
    'a values file sets a value that the chart does not have',
    committed('charts/orders/values.yaml', (text) => text.replace('mode: sidecar', 'mode: sidecar\n  replica: 3')),
    /^error: charts\/orders\/values\.yaml: the top level must NOT have additional properties \(replica\)\.$/m,
  ],
  [
    'a template reads a value that the chart does not have',
    committed('charts/gatehouse/templates/service.yaml', (text) => `${text}# {{ .Values.service.nodePort }}\n`),
    /^error: charts\/gatehouse\/templates\/service\.yaml: the chart has no value service\.nodePort\.$/m,
  ],
  [
    'the documentation names another version',
    committed('docs/deploying.md', (text) => text.replace(`gatehouse:${version}`, 'gatehouse:7.8.9')),
    /^error: docs\/deploying\.md:\d+: the version is 7\.8\.9, but package\.json has/m,
  ],
  [
    'the program prints another version',
    committed('src/core/version.ts', (text) => text.replace(version, '7.8.9')),
    /^error: src\/core\/version\.ts:\d+: the version is 7\.8\.9, but package\.json has/m,
  ],
  [
    'the code owners are those of another owner',
    committed('.github/CODEOWNERS', (text) => text.replace(/@[\w-]+\//, '@someone/')),
    /^error: \.github\/CODEOWNERS:\d+: the owner is someone, but package\.json has/m,
  ],
  [
    'a chart names another owner',
    committed('charts/gatehouse/values.yaml', (text) => text.replace(/ghcr\.io\/[\w-]+/, 'ghcr.io/someone')),
    /^error: charts\/gatehouse\/values\.yaml:\d+: the owner is someone, but package\.json has/m,
  ],
] as const)
  test(`A release is refused when ${why}`, () => {
    assert.match(refusal(change), said)
  })

test('A release of a tag is refused for another version, and with unreleased entries', () => {
  const unreleased = () =>
    committed('CHANGELOG.md', (text) => text.replace('## Unreleased\n', '## Unreleased\n\n- A change.\n'))()

  const said = refusal(unreleased, ['--tag', 'v7.8.9'])

  assert.match(said, /^error: The tag is v7\.8\.9, but package\.json has the version of v[\d.]+\. Tag the commit/m)
  assert.match(said, /^error: CHANGELOG\.md: "Unreleased" has entries\. Move them to the section "## [\d.]+"\.$/m)
})

test('A release of a tag is refused while the address for vulnerabilities is missing or an example', () => {
  const error =
    /^error: package\.json: bugs\.email must be an address that reads reports of vulnerabilities\. Set it\.$/m
  const withContact = (email: string) =>
    committed('package.json', (text) =>
      JSON.stringify({ ...(JSON.parse(text) as object), bugs: { email } } satisfies object, null, 2),
    )

  for (const email of ['', 'security@example.org', 'gatehouse@users.noreply.github.com'])
    assert.match(refusal(withContact(email), ['--tag', 'v7.8.9']), error)
  assert.doesNotMatch(refusal(withContact('security@gatehouse.dev'), ['--tag', 'v7.8.9']), error)
})

test('A missing program is named, with the package to install', () => {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  for (const tool of ['git', 'tar', 'gzip', 'npm', 'sh'])
    symlinkSync(run('sh', ['-c', `command -v ${tool}`], folder).trim(), join(bin, tool))
  symlinkSync(process.execPath, join(bin, 'node'))

  const said = refusal(() => {}, ['--dry-run'], { env: { PATH: bin } })

  assert.equal(said, 'The release needs dpkg-deb. On Debian: apt-get install dpkg\n')
})

test('A new version is written in every place, and only the CHANGELOG is left', () => {
  const said = refusal(() => {
    assert.equal(release(one, ['--set-version', '42.0.0']).status, 0)
    const kept = spawnSync('git', ['grep', '-nF', version, '--', 'charts', 'Dockerfile'], {
      cwd: one,
      encoding: 'utf8',
    })
    assert.equal(kept.stdout, '')
    needsNoInstallation(one)
    commit(one)
  })

  // Entries that are not released yet, and a missing address, are warnings.
  const errors = said.split('\n').filter((line) => line.startsWith('error: '))
  assert.deepEqual(errors, ['error: CHANGELOG.md: there is no section "## 42.0.0". Write it.'])
})

const sumsOf = (clone: string) => readFileSync(join(clone, 'release', 'SHA256SUMS'), 'utf8')

test('An interrupted release leaves nothing that looks finished, and the next one has the same bytes elsewhere', async () => {
  const other = repository('a folder', 'of another', 'depth')
  const child = spawn(process.execPath, ['.ci/release/release.mjs', '--dry-run'], { cwd: one, stdio: 'ignore' })
  const ended = new Promise((resolve) => void child.once('exit', resolve))
  await until('an artefact is written', () => existsSync(join(one, 'release.partial', '1', 'out', 'RELEASE_NOTES.md')))
  child.kill('SIGKILL')
  await ended

  assert.ok(!existsSync(join(one, 'release')))
  const first = release(one, ['--dry-run'])
  const second = release(other, ['--dry-run', '--once'], {
    umask: '077',
    env: { TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8', TAR_OPTIONS: '--mode=a+w', SOURCE_DATE_EPOCH: '1', GZIP: '-1' },
  })

  assert.deepEqual([first.status, second.status], [0, 0], first.stderr + second.stderr)
  assert.match(first.stderr, /^An earlier run was interrupted: its files are removed\.$/m)
  assert.equal(sumsOf(one), sumsOf(other))
  assert.equal(first.stdout, sumsOf(one))
  assert.ok(!existsSync(join(one, 'release.partial')))
})

const artefact = (name: string) => join(one, 'release', name)

test('The release has every artefact, and its sums are those of the files', () => {
  const names = readdirSync(join(one, 'release')).toSorted()

  assert.deepEqual(
    names,
    [
      'RELEASE_NOTES.md',
      'SHA256SUMS',
      `gatehouse-${version}.cdx.json`,
      `gatehouse-chart-${version}.oci.tar`,
      `gatehouse-chart-${version}.tgz`,
      `gatehouse-image-layers-${version}.oci.tar`,
      `gatehouse-proxy-gatehouse-${version}.tgz`,
      `gatehouse_${version}_all.deb`,
      'gateway.schema.json',
      `orders-chart-${version}.oci.tar`,
      `orders-chart-${version}.tgz`,
      'schemastore-entry.json',
    ].toSorted(),
  )
  run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], join(one, 'release'))
})

test('The commands of SECURITY.md that need no network accept the release, and notice a changed file', () => {
  const [, commands = ''] =
    /need no network:\n\n```sh\n([^`]+)```/.exec(readFileSync(join(root, 'SECURITY.md'), 'utf8')) ?? []
  const verify = () => spawnSync('sh', ['-e', '-c', commands], { cwd: join(one, 'release'), encoding: 'utf8' })
  const file = artefact(`gatehouse_${version}_all.deb`)
  const bytes = readFileSync(file)

  const accepted = verify()
  writeFileSync(file, Buffer.concat([bytes, Buffer.from('!')]))
  const rejected = verify()
  writeFileSync(file, bytes)

  assert.equal(accepted.status, 0, accepted.stderr)
  assert.match(accepted.stdout, /^gatehouse_[\d.]+_all\.deb: OK$/m)
  assert.match(rejected.stdout, /^gatehouse_[\d.]+_all\.deb: FAILED$/m)
  assert.notEqual(rejected.status, 0)
})

test('The release notes are the section of the CHANGELOG, with links that work elsewhere', () => {
  const notes = readFileSync(artefact('RELEASE_NOTES.md'), 'utf8')

  assert.match(notes, /^### Must read before upgrading$/m)
  assert.doesNotMatch(notes, /Unreleased|\]\((?:docs|SECURITY)/)
  assert.ok(notes.includes(`/blob/v${version}/SECURITY.md#how-to-verify-a-release)`))
})

interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly mediaType: string
  readonly platform?: { readonly architecture: string }
}
interface Blob {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
  readonly manifests: readonly Descriptor[]
}

/** An OCI layout, each blob checked against its descriptor. */
function layout(name: string) {
  const place = mkdtempSync(join(folder, 'layout-'))
  run('tar', ['-xf', artefact(name)], place)
  const bytes = ({ digest, size }: Descriptor) => {
    const content = readFileSync(join(place, 'blobs', digest.replace(':', '/')))
    const hash = createHash('sha256').update(content).digest('hex')
    assert.deepEqual([`sha256:${hash}`, content.length], [digest, size])
    return content
  }
  const json = (descriptor: Descriptor) => JSON.parse(bytes(descriptor).toString()) as Blob
  const [entry] = (JSON.parse(readFileSync(join(place, 'index.json'), 'utf8')) as Blob).manifests
  return { bytes, json, entry: entry as Descriptor }
}

test('The layers of the image are for both processors, and have what the Dockerfile copies from its build', () => {
  const { bytes, json, entry } = layout(`gatehouse-image-layers-${version}.oci.tar`)
  const { manifests } = json(entry)
  const [layers, others] = manifests.map((manifest) => json(manifest).layers)
  const file = join(folder, 'layer.tgz')
  writeFileSync(file, bytes(layers?.[0] as Descriptor))
  const held = run('tar', ['-tzf', file], folder).split('\n')

  assert.deepEqual(
    manifests.map(({ platform }) => platform?.architecture),
    ['amd64', 'arm64'],
  )
  assert.deepEqual(layers, others)
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
  const copied = [...dockerfile.matchAll(/^COPY --from=build (.*) \S+$/gm)].flatMap(([, paths = '']) =>
    paths.split(' '),
  )
  assert.ok(copied.length >= 4)
  for (const path of copied)
    assert.ok(
      held.some((name) => `/${name}`.replace(/\/$/, '') === path),
      path,
    )
  assert.doesNotMatch(held.join('\n'), /\.map$|dist\/demo\//m)
})

for (const chart of ['gatehouse', 'orders'])
  test(`The chart ${chart} is an artefact of the registry with the types of Helm, and the same archive`, () => {
    const { bytes, json, entry } = layout(`${chart}-chart-${version}.oci.tar`)
    const { config, layers } = json(entry)
    const [content] = layers as readonly [Descriptor]

    assert.equal(config.mediaType, 'application/vnd.cncf.helm.config.v1+json')
    assert.equal(content.mediaType, 'application/vnd.cncf.helm.chart.content.v1.tar+gzip')
    assert.deepEqual(bytes(content), readFileSync(artefact(`${chart}-chart-${version}.tgz`)))
    const { name, version: of } = json(config) as unknown as Record<string, string>
    assert.deepEqual([name, of], [chart, version])
  })

test('Where there is a Helm, it renders the released charts like those of the repository', (t) => {
  const helm = process.env['HELM'] ?? 'helm'
  if (spawnSync(helm, ['version']).error !== undefined) return t.diagnostic(`${helm} is not there`)
  const args = ['template', 'orders', artefact(`orders-chart-${version}.tgz`), '--namespace', 'orders']
  const text = run(helm, [...args, '--kube-version', '1.30.0'], folder)

  const [, ...rendered] = readFileSync(join(root, 'test/deploying/rendered/sidecar.yaml'), 'utf8').split('\n')
  assert.equal(text, rendered.join('\n'))
})

test('The Debian package has a program that runs, its unit, and a configuration that an upgrade keeps', () => {
  const place = join(folder, 'installed')
  const file = artefact(`gatehouse_${version}_all.deb`)
  run('dpkg-deb', ['--extract', file, place], folder)
  run('dpkg-deb', ['--control', file, join(place, 'DEBIAN')], folder)
  const read = (path: string) => readFileSync(join(place, path), 'utf8')

  assert.equal(run(process.execPath, [join(place, 'usr/bin/gatehouse'), '--version'], folder).trim(), version)
  // Another Node.js may come first in the PATH of a person.
  assert.match(read('usr/lib/gatehouse/dist/main.js'), /^#!\/usr\/bin\/node\n/)
  assert.match(read('usr/share/bash-completion/completions/gatehouse'), /^complete .* gatehouse$/m)
  assert.match(read('usr/share/zsh/vendor-completions/_gatehouse'), /^#compdef gatehouse$/m)
  assert.match(read('usr/share/fish/vendor_completions.d/gatehouse.fish'), /^complete -c gatehouse /m)
  assert.match(run('gzip', ['-dc', join(place, 'usr/share/man/man1/gatehouse.1.gz')], folder), /^\.TH GATEHOUSE 1 /)
  assert.match(read('usr/lib/systemd/system/gatehouse.service'), /^ExecStart=\/usr\/bin\/gatehouse run --config/m)
  assert.doesNotMatch(read('usr/lib/systemd/system/gatehouse.service'), /\/opt\//)
  assert.equal(read('DEBIAN/conffiles'), '/etc/gatehouse/gateway.yaml\n')
  assert.match(read('DEBIAN/control'), /^Depends: nodejs \(>= \d+\.\d+\.\d+\)$/m)
  run('md5sum', ['--check', '--strict', '--quiet', 'DEBIAN/md5sums'], place)
  for (const name of ['postinst', 'prerm', 'postrm']) run('sh', ['-n', join(place, 'DEBIAN', name)], folder)
  const listed = run('dpkg-deb', ['--contents', file], folder)
  assert.match(listed, /^drwx------ root\/root .* \.\/etc\/gatehouse\/secrets\/$/m)
  assert.doesNotMatch(listed, /^\S+ (?!root\/root)/m)
})

test('The npm package has the files that npm packs, and installs without a network', () => {
  const file = artefact(`gatehouse-proxy-gatehouse-${version}.tgz`)
  const held = run('tar', ['-tzf', file], folder).trim().split('\n')
  const packed = run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'], root)
  const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }]
  run('npm', ['install', '--global', '--prefix', folder, '--offline', '--loglevel=error', file], folder)

  const withoutProgram = (names: readonly string[]) =>
    names.filter((name) => !name.startsWith('package/dist/')).toSorted()
  assert.deepEqual(withoutProgram(held), withoutProgram(files.map(({ path }) => `package/${path}`)))
  assert.equal(run(join(folder, 'bin', 'gatehouse'), ['--version'], folder).trim(), version)
})
