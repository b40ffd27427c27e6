import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test, type TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { basic, type KeyWorld, makeKey, send, startKeyWorld } from '../support/key-world.ts'
import { formsOf, sendForm } from '../support/session-page.ts'
import { installDebian, Missing } from './installed.ts'
import { dataFolder, startProgram } from './programs.ts'

// Real programs that cannot sign in with a browser send keys of a person.

const programs = {
  git: '/usr/bin/git',
  curl: '/usr/bin/curl',
  radicale: '/usr/bin/radicale',
  vdirsyncer: '/usr/bin/vdirsyncer',
  restic: '/usr/bin/restic',
  rclone: '/usr/bin/rclone',
}

let missing: string | undefined
before(() => {
  try {
    installDebian(programs)
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    missing = error.message
  }
})
after(() => missing !== undefined && console.log(missing))

/** A gateway in front of an application, with a key of Jane. */
async function started(t: TestContext, upstream: URL, headers = 'X-Remote-User: sub') {
  const world = await startKeyWorld(t, {
    upstream,
    headers: `{ ${headers} }`,
    upstreamSettings: 'keys: { header: X-Api-Key }\n    rules: [{ path: /*, keys: true }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)
  return { world, jane, key, end: () => endKeys(world, jane) }
}

async function endKeys(world: KeyWorld, jane: ReturnType<KeyWorld['browser']>): Promise<void> {
  const form = formsOf(await jane.get(world.page)).find(({ button }) => /^End the key/.test(button))
  await sendForm(jane, form ?? assert.fail())
}

/** Runs a program while this process serves its requests. */
async function run(
  [program, ...args]: readonly [string, ...string[]],
  { env = {}, cwd }: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {},
): Promise<{ readonly status: number | null; readonly out: string }> {
  const child = spawn(program, args, { env: { ...process.env, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (out += text))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, out }
}

async function succeeds(...[command, options]: Parameters<typeof run>): Promise<string> {
  const { status, out } = await run(command, options)
  assert.equal(status, 0, out)
  return out
}

async function fails(...[command, options]: Parameters<typeof run>): Promise<void> {
  const { status, out } = await run(command, options)
  assert.notEqual(status, 0, out)
}

const withKey = (url: string, key: string, user = 'any') => url.replace('://', `://${user}:${key}@`)

test('curl sends a key as password, as bearer token, and in a header', async (t) => {
  if (missing !== undefined) return t.skip(missing)
  const seen: unknown[] = []
  const server = createServer((req, res) => {
    seen.push(req.headers.authorization ?? req.headers['x-api-key'])
    res.end(String(req.headers['x-remote-user']))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { world, key } = await started(t, new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))

  for (const args of [
    ['--user', `jane:${key}`],
    ['--oauth2-bearer', key],
    ['--header', `X-Api-Key: ${key}`],
  ])
    assert.equal(await succeeds(['curl', '--silent', '--fail', ...args, `${world.url}/x`]), 'jane')
  await fails(['curl', '--silent', '--fail', '--user', `jane:${key}x`, `${world.url}/x`])
  assert.deepEqual(seen, [undefined, undefined, undefined])
})

test('git clones and pushes over HTTP with a key as password', async (t) => {
  if (missing !== undefined) return t.skip(missing)
  const folder = dataFolder(t)
  const repository = join(folder, 'repositories', 'notes.git')
  spawnSync('git', ['init', '--bare', '--initial-branch=main', repository])
  spawnSync('git', ['-C', repository, 'config', 'http.receivepack', 'true'])
  const server = createServer((req, res) => {
    const { pathname, search } = new URL(req.url ?? '/', 'http://localhost')
    const cgi = spawn('/usr/lib/git-core/git-http-backend', {
      env: {
        ...process.env,
        GIT_PROJECT_ROOT: join(folder, 'repositories'),
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: req.method ?? 'GET',
        CONTENT_TYPE: req.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: String(req.headers['content-encoding'] ?? ''),
        REMOTE_USER: String(req.headers['x-remote-user']),
      },
    })
    req.pipe(cgi.stdin)
    const chunks: Buffer[] = []
    cgi.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    cgi.on('close', () => {
      const all = Buffer.concat(chunks)
      const at = all.indexOf('\r\n\r\n')
      const lines = all
        .subarray(0, at)
        .toString()
        .split('\r\n')
        .map((line) => line.split(/: (.*)/s))
      const status = Number(lines.find(([name]) => name === 'Status')?.[1]?.slice(0, 3) ?? 200)
      for (const [name = '', value = ''] of lines) if (name !== 'Status') res.setHeader(name, value)
      res.writeHead(status).end(all.subarray(at + 4))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { world, key, end } = await started(t, new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  const env = { GIT_TERMINAL_PROMPT: '0', HOME: folder }
  const git = (...args: string[]) =>
    succeeds(['git', '-c', 'user.name=Jane', '-c', 'user.email=jane@example.com', ...args], { env })
  const [copy, url] = [join(folder, 'copy'), withKey(`${world.url}/notes.git`, key)]

  await git('clone', url, copy)
  writeFileSync(join(copy, 'a.txt'), 'first\n')
  await git('-C', copy, 'add', 'a.txt')
  await git('-C', copy, 'commit', '-m', 'first')
  await git('-C', copy, 'push', 'origin', 'HEAD:main')
  await git('clone', url, join(folder, 'second'))

  assert.equal(readFileSync(join(folder, 'second', 'a.txt'), 'utf8'), 'first\n')
  await end()
  await fails(['git', 'clone', url, join(folder, 'third')], { env })
})

test('vdirsyncer keeps calendars and contacts at Radicale with a key as password', async (t) => {
  if (missing !== undefined) return t.skip(missing)
  const folder = dataFolder(t)
  const port = await freePort()
  writeFileSync(
    join(folder, 'radicale.conf'),
    `[server]\nhosts = 127.0.0.1:${port}\n[auth]\ntype = http_x_remote_user\n[storage]\nfilesystem_folder = ${join(folder, 'collections')}\n`,
  )
  const radicale = await startProgram(
    t,
    ['radicale', '--config', join(folder, 'radicale.conf')],
    new URL(`http://127.0.0.1:${port}/.web/`),
  )
  const { world, key, end } = await started(t, radicale.url)
  for (const [kind, path] of [
    ['VEVENT', 'work'],
    ['VADDRESSBOOK', 'people'],
  ] as const)
    assert.equal((await mkcol(`${world.url}/jane/${path}/`, key, kind)).status, 201)
  const local = join(folder, 'local')
  for (const name of ['work', 'people']) mkdirSync(join(local, name), { recursive: true })
  writeFileSync(join(local, 'work', 'a.ics'), event)
  writeFileSync(join(local, 'people', 'b.vcf'), card)
  const config = join(folder, 'vdirsyncer.conf')
  const remote = (type: string) =>
    `type = "${type}"\nurl = "${world.url}/"\nusername = "anybody"\npassword = "${key}"\n`
  writeFileSync(
    config,
    `[general]\nstatus_path = "${join(folder, 'status')}"
[pair calendars]\na = "here"\nb = "there"\ncollections = ["work"]
[storage here]\ntype = "filesystem"\npath = "${local}"\nfileext = ".ics"
[storage there]\n${remote('caldav')}
[pair contacts]\na = "cards"\nb = "addresses"\ncollections = ["people"]
[storage cards]\ntype = "filesystem"\npath = "${local}"\nfileext = ".vcf"
[storage addresses]\n${remote('carddav')}`,
  )
  const sync = (task: string) => ['vdirsyncer', '--config', config, task] as const

  await succeeds(sync('discover'))
  await succeeds(sync('sync'))

  const found = await send(`${world.url}/jane/work/`, basic(key))
  assert.match(found.body, /Stand-up/)
  assert.match((await send(`${world.url}/jane/people/`, basic(key))).body, /Samir Haddad/)
  await end()
  await fails(sync('sync'))
})

const event = `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//test//EN\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTAMP:20260101T090000Z\r\nDTSTART:20260101T090000Z\r\nSUMMARY:Stand-up\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`
const card = `BEGIN:VCARD\r\nVERSION:3.0\r\nUID:b\r\nFN:Samir Haddad\r\nN:Haddad;Samir;;;\r\nEND:VCARD\r\n`

/** Creates a collection (RFC 5689). */
async function mkcol(url: string, key: string, kind: 'VEVENT' | 'VADDRESSBOOK') {
  const type = kind === 'VEVENT' ? '<C:calendar/>' : '<A:addressbook/>'
  const body = `<?xml version="1.0"?><D:mkcol xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:A="urn:ietf:params:xml:ns:carddav"><D:set><D:prop><D:resourcetype><D:collection/>${type}</D:resourcetype></D:prop></D:set></D:mkcol>`
  return fetch(url, { method: 'MKCOL', headers: basic(key), body })
}

test('restic keeps a backup at a REST server, and rclone copies over WebDAV, with a key as password', async (t) => {
  if (missing !== undefined) return t.skip(missing)
  const folder = dataFolder(t)
  const [kept, shared, source, back] = ['kept', 'shared', 'source', 'back'].map((name) => {
    mkdirSync(join(folder, name))
    return join(folder, name)
  }) as [string, string, string, string]
  writeFileSync(join(source, 'a.txt'), 'first\n')
  const serve = async (kind: string, of: string) => {
    const at = `127.0.0.1:${await freePort()}`
    return startProgram(t, ['rclone', 'serve', kind, of, '--addr', at], new URL(`http://${at}/`))
  }
  const repository = await started(t, (await serve('restic', kept)).url)
  const env = { RESTIC_PASSWORD: 'of the backup', HOME: folder }
  const at = `rest:${withKey(repository.world.url, repository.key)}/`
  const restic = (...args: string[]) => ['restic', '--repo', at, '--no-cache', ...args] as const

  await succeeds(restic('init'), { env })
  await succeeds(restic('backup', source), { env })
  await succeeds(restic('restore', 'latest', '--target', back), { env })
  assert.equal(readFileSync(join(back, source, 'a.txt'), 'utf8'), 'first\n')
  await repository.end()
  await fails(restic('snapshots'), { env })

  const files = await started(t, (await serve('webdav', shared)).url)
  const password = spawnSync('rclone', ['obscure', files.key], { encoding: 'utf8' }).stdout.trim()
  const options = [`--webdav-url=${files.world.url}`, '--webdav-user=any', `--webdav-pass=${password}`, '--retries=1']
  const copy = ['rclone', 'copy', source, ':webdav:', ...options] as const
  await succeeds(copy, { env })
  assert.ok(existsSync(join(shared, 'a.txt')))
  await files.end()
  await fails(['rclone', 'lsf', ':webdav:', ...options], { env })
})
