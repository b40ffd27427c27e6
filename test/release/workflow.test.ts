import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { root } from '../support/command.ts'

interface Job {
  readonly needs?: string | readonly string[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[]
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const folder = join(root, '.github', 'workflows')
const texts = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const)
const release = parse(readFileSync(join(folder, 'release.yml'), 'utf8')) as Workflow

test('Workflows use actions by digest, begin with reading only, and have no secret of their own', () => {
  assert.ok(texts.length >= 2)
  for (const [name, text] of texts) {
    const { permissions, jobs } = parse(text) as Workflow
    const used = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses = [] }) => uses))

    assert.deepEqual(
      used.filter((action) => !/@[0-9a-f]{40}$/.test(action)),
      [],
      name,
    )
    assert.doesNotMatch(JSON.stringify(permissions), /write/, name)
    assert.doesNotMatch(text, /\bsecrets\./, name)
  }
})

test('A release is tested and built before it is published, and becomes visible at the end', () => {
  const { jobs } = release
  const needs = (name: string): string[] => {
    const direct = [jobs[name]?.needs ?? []].flat()
    return [...direct, ...direct.flatMap(needs)]
  }
  const writing = Object.keys(jobs).filter((name) => /write/.test(JSON.stringify(jobs[name]?.permissions)))

  assert.deepEqual(writing, ['draft', 'registry', 'npm', 'publish'])
  for (const name of writing) assert.ok(needs(name).includes('build') && needs(name).includes('test'), name)
  assert.deepEqual(
    Object.keys(jobs).filter((name) => name !== 'publish' && !needs('publish').includes(name)),
    [],
  )
  assert.ok(jobs['build']?.steps.some(({ run }) => run === 'npm run release -- --tag "$GITHUB_REF_NAME"'))
})
