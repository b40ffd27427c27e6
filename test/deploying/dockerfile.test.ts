import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { help } from '../../src/cli/help.ts'
import { bundledPackages } from '../support/bundle.ts'
import { root } from '../support/command.ts'
import { inDockerfile, read } from './examples.ts'

const dockerfile = read('Dockerfile')

test('The image has the version of the package and a single base image', () => {
  assert.match(dockerfile, new RegExp(`^ARG VERSION=${manifest.version.replaceAll('.', '\\.')}$`, 'm'))
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  assert.deepEqual(new Set(bases), new Set(['$BASE']))
  assert.match(dockerfile, /^ARG BASE=node:24-bookworm-slim$/m)
  assert.match(dockerfile, /image\.base\.name="docker\.io\/library\/\$BASE"/)
})

test('The start command and the health check of the image are valid commands with the same configuration file', () => {
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

test('The compile cache is made with the flags of the start command and of the health check', () => {
  const [, ...entry] = JSON.parse(inDockerfile('ENTRYPOINT')) as string[]
  const making = [...inDockerfile('RUN install').matchAll(/ node (.*?)dist\/main\.js (\w+)/g)]
  const flagsOf = (command: string) =>
    making
      .find(([, , name]) => name === command)?.[1]
      ?.trim()
      .split(/ +/)

  // Node.js has another cache for other flags of V8.
  assert.deepEqual(
    flagsOf('run'),
    entry.filter((argument) => argument.startsWith('--')),
  )
  assert.deepEqual(flagsOf('health'), [''])
})

test('A new volume for the session file belongs to the user of the image', () => {
  assert.match(inDockerfile('RUN install'), /^-d -o 1000 -g 1000 .*\/var\/lib\/gatehouse /)
  assert.equal(inDockerfile('USER'), '1000:1000')
})

test('The image has a command with the name from the documentation', () => {
  assert.match(dockerfile, /&& chmod a\+x dist\/main\.js$/m)
  assert.match(dockerfile, /&& ln -s \/opt\/gatehouse\/dist\/main\.js \/usr\/local\/bin\/gatehouse /)
  assert.match(read('src/main.ts'), /^#!\/usr\/bin\/env node\n/)
})

test('Every file that the image is built from exists and passes .dockerignore', () => {
  const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '))
  const letIn = new Set(read('.dockerignore').match(/^!.*$/gm))

  assert.ok(sources.length >= 7)
  assert.deepEqual(
    sources.filter((name) => !letIn.has(`!${name.replace(/^\.\//, '')}`) || !existsSync(join(root, name))),
    [],
  )
})

test('The image and a clone are built with every script that the build uses', () => {
  const used = [...read('.ci/bundle.mjs').matchAll(/'\.(?:ci)?\/([\w-]+\.mjs)'/g)].map(([, file]) => String(file))
  assert.ok(used.length > 1)
  for (const file of ['bundle.mjs', ...used]) {
    assert.ok(dockerfile.includes(` .ci/${file} `), `${file} in the Dockerfile`)
    assert.ok(read('.ci/prepare.mjs').includes(`'${file}'`), `${file} in .ci/prepare.mjs`)
  }
})

test('The image contains nothing that depends on the processor', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { cpu?: string[]; os?: string[]; hasInstallScript?: true }>
  }
  const bound = bundledPackages().filter((path) => {
    const { cpu, os, hasInstallScript } = packages[path] ?? {}
    return (cpu ?? os ?? hasInstallScript) !== undefined
  })

  assert.deepEqual(bound, [])
  assert.doesNotMatch(dockerfile, /^(?!#).*(?:amd64|arm64|x86_64|aarch64|--platform)/m)
})
