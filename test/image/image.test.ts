import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { request } from 'undici'
import { inDockerfile } from '../deploying/examples.ts'
import { Browser } from '../support/browser.ts'
import { bundledPackages } from '../support/bundle.ts'
import { root, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

/** The files of the image, without a container: the same files, read-only, and another user. */
function layOutImage(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-image-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  for (const file of ['package.json', 'schemas', 'dist'])
    cpSync(join(root, file), join(folder, file), { recursive: true })
  rmSync(join(folder, 'dist', 'demo'), { recursive: true })
  execFileSync('chmod', ['-R', 'a+rX,a-w', folder])
  return folder
}

/**
 * The image's user, if the test may change to it and it may run Node.js, as root in a container
 * may.
 */
function imageUser(): { uid: number; gid: number } | undefined {
  const user = { uid: 1000, gid: 1000 }
  return process.getuid?.() === 0 && spawnSync(process.execPath, ['-v'], user).status === 0 ? user : undefined
}

async function contents(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path} ${statSync(path).mtimeMs}`)
    .sort()
}

const folder = layOutImage()

/** How the image starts Node.js. */
const nodeOptions = (JSON.parse(inDockerfile('ENTRYPOINT')) as string[]).filter((argument) => argument.startsWith('--'))

test('The content of the image serves, is healthy, drains and writes nothing', async (t) => {
  const before = await contents(folder)
  const around = await prepareGateway(t)
  chmodSync(around.folder, 0o755)
  const user = imageUser()
  const command = (name: string) =>
    startCommand(t, [name, '--config', around.file], {
      program: [process.execPath, ...nodeOptions, join(folder, 'dist', 'main.js')],
      cwd: folder,
      env: { ...around.env, NODE_ENV: 'production' },
      ...(user && { user }),
    })

  const gateway = command('run')
  await gateway.said('gatehouse is ready')
  const ready = await request(`${around.adminUrl}/ready`)
  const demo = command('demo')
  const ends = [await command('health').ended, await demo.ended]
  const page = await new Browser('jane').get(`${around.url}/`)
  const response = request(`${around.url}/static/slow`).then(({ body }) => body.text())
  await until('the upstream has the request', () => around.upstream.waiting() === 1)
  gateway.child.kill('SIGTERM')
  await until('it drains', async () => (await request(`${around.adminUrl}/ready`)).statusCode === 503)
  around.upstream.release()

  assert.deepEqual([ready.statusCode, page.body, await response], [200, 'for jane', 'at last'])
  assert.deepEqual([...ends, await gateway.ended], [0, 1, 0])
  assert.match(demo.err(), /the demo is not part of this installation/)
  assert.deepEqual(await contents(folder), before)
})

test('The image contains no packages beside the program', () => {
  const lines = readFileSync(join(root, 'Dockerfile'), 'utf8').split('\n')

  assert.deepEqual(
    lines.filter((line) => /^COPY --from=build .*node_modules/.test(line)),
    [],
  )
  assert.deepEqual(
    bundledPackages().filter((path) => /oidc-provider|esbuild/.test(path)),
    [],
  )
})
