import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import type { Json } from '../support/signing-provider.ts'

/** The one person of each realm. */
export const person = { username: 'jane', password: 'correct horse battery', email: 'jane@example.com' }

/** A Keycloak in a process of its own, on loopback, with its database in memory. */
export interface Keycloak {
  /** Creates a realm with one client and one person. */
  createRealm(client: Json, settings?: Json): Promise<Realm>
  /** The end of what it has written. */
  output(): string
  stop(): Promise<void>
}

export interface Realm {
  readonly issuer: string
  /**
   * Sends a request to the admin REST API, below `/admin/realms/REALM`.
   * @throws {Error} when the status is not 2xx
   */
  admin(method: string, path: string, body?: Json): Promise<unknown>
  /** The `id` of the person. */
  readonly userId: string
  /** The person's single sign-on sessions. */
  sessions(): Promise<readonly { readonly id: string }[]>
}

const admin = { username: 'admin', password: randomBytes(12).toString('hex') }
/** How long Keycloak may take to start on a busy machine, in ms. */
const startLimitMs = 300_000

/** @throws when Keycloak does not start; its output is in the error */
export async function startKeycloak(home: string): Promise<Keycloak> {
  const [port, managementPort] = [await freePort(), await freePort()]
  const base = `http://127.0.0.1:${port}`
  // Keycloak writes caches and its build into its data folder, which is shared with nobody.
  const data = mkdtempSync(join(tmpdir(), 'gatehouse-keycloak-'))
  const server = spawn(
    join(home, 'bin', 'kc.sh'),
    [
      'start-dev',
      '--db=dev-mem',
      '--cache=local',
      '--http-host=127.0.0.1',
      `--http-port=${port}`,
      `--http-management-port=${managementPort}`,
    ],
    {
      // A process group of its own: kc.sh starts Java as a child.
      detached: true,
      env: {
        ...process.env,
        JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
        JAVA_OPTS_APPEND: `-Djava.io.tmpdir=${data}`,
        KC_BOOTSTRAP_ADMIN_USERNAME: admin.username,
        KC_BOOTSTRAP_ADMIN_PASSWORD: admin.password,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  const started = new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`Keycloak ${why}:\n${output}`))
    const timer = setTimeout(() => fail('did not start in time'), startLimitMs)
    for (const stream of [server.stdout, server.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-20_000)
        if (!/started in [\d.]+s/.test(output)) return
        clearTimeout(timer)
        resolve()
      })
    server.once('exit', (code) => fail(`ended with ${code}`))
  })
  const stop = async () => {
    if (server.exitCode === null && server.pid !== undefined) {
      const ended = once(server, 'exit')
      process.kill(-server.pid, 'SIGTERM')
      await ended
    }
    rmSync(data, { recursive: true, force: true })
  }
  await started.catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { createRealm: (client, settings) => createRealm(base, client, settings), output: () => output, stop }
}

async function createRealm(base: string, client: Json, settings: Json = {}): Promise<Realm> {
  const realm = `realm-${randomBytes(4).toString('hex')}`
  const { username, password, email } = person
  const user = {
    ...{ username, email, emailVerified: true, enabled: true, firstName: 'Jane', lastName: 'Doe' },
    credentials: [{ type: 'password', value: password, temporary: false }],
  }
  await asAdmin(base, 'POST', '/admin/realms', {
    ...{ realm, enabled: true, sslRequired: 'none', ...settings },
    clients: [{ protocol: 'openid-connect', enabled: true, standardFlowEnabled: true, ...client }],
  })
  const inRealm = (method: string, path: string, body?: Json) =>
    asAdmin(base, method, `/admin/realms/${realm}${path}`, body)
  // A person who is imported along with the realm has none of its default roles.
  await inRealm('POST', '/users', user)
  const [found] = (await inRealm('GET', `/users?username=${username}`)) as { readonly id: string }[]
  const userId = found?.id ?? ''
  return {
    issuer: `${base}/realms/${realm}`,
    admin: inRealm,
    userId,
    sessions: async () => (await inRealm('GET', `/users/${userId}/sessions`)) as { readonly id: string }[],
  }
}

async function asAdmin(base: string, method: string, path: string, body?: Json): Promise<unknown> {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${await adminToken(base)}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}

/** Tokens of the administrator live for a minute only. */
async function adminToken(base: string): Promise<string> {
  const response = await fetch(`${base}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...admin }),
  })
  const { access_token } = (await response.json()) as { readonly access_token?: string }
  if (access_token === undefined) throw new Error(`no token for the administrator: ${response.status}`)
  return access_token
}
