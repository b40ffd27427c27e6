import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { help } from '../../src/cli/help.ts'
import { root } from '../support/command.ts'
import { inDockerfile, read } from './examples.ts'

const dockerfile = read('Dockerfile')

test('the image says the version of the package, and is of one base', () => {
  assert.match(dockerfile, new RegExp(`^ARG VERSION=${manifest.version.replaceAll('.', '\\.')}$`, 'm'))
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  assert.deepEqual(new Set(bases), new Set(['node:24-bookworm-slim']))
  assert.match(dockerfile, /image\.base\.name="docker\.io\/library\/node:24-bookworm-slim"/)
})

test('what the image runs and asks is a command, with the file that it is given', () => {
  const [node = '', ...further] = JSON.parse(inDockerfile('ENTRYPOINT')) as string[]
  const entry = [node, ...further.filter((argument) => !argument.startsWith('--'))]
  const run = JSON.parse(inDockerfile('CMD')) as string[]
  const health = JSON.parse(/^ *CMD (\["node", .*"health".*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[]

  assert.deepEqual(health.slice(0, entry.length), entry)
  for (const [command = '', option, file] of [run, health.slice(entry.length)]) {
    assert.ok(command in help, command)
    assert.deepEqual([option, file], ['--config', '/etc/gatehouse/gateway.yaml'])
  }
  assert.equal(inDockerfile('STOPSIGNAL'), 'SIGTERM')
})

test('the image has a command of the name that the documentation uses', () => {
  assert.match(dockerfile, /&& chmod a\+x dist\/main\.js$/m)
  assert.match(dockerfile, /&& ln -s \/opt\/gatehouse\/dist\/main\.js \/usr\/local\/bin\/gatehouse /)
  assert.match(read('src/main.ts'), /^#!\/usr\/bin\/env node\n/)
})

test('everything that the image is built of is there, and passes .dockerignore', () => {
  const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '))
  const letIn = new Set(read('.dockerignore').match(/^!.*$/gm))

  assert.ok(sources.length >= 7)
  assert.deepEqual(
    sources.filter((name) => !letIn.has(`!${name.replace(/^\.\//, '')}`) || !existsSync(join(root, name))),
    [],
  )
})

test('nothing in the image is for one processor only', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: true; cpu?: string[]; os?: string[]; hasInstallScript?: true }>
  }
  const bound = Object.entries(packages).filter(
    ([, { dev, cpu, os, hasInstallScript }]) => dev !== true && (cpu ?? os ?? hasInstallScript) !== undefined,
  )

  assert.deepEqual(bound, [])
  assert.doesNotMatch(dockerfile, /^(?!#).*(?:amd64|arm64|x86_64|aarch64|--platform)/m)
})
