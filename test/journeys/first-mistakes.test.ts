// Slow: 7 s, each mistake is made in a process of its own
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import { Browser, type Visit } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand, type Command } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { startProvider, type TestProvider } from '../support/provider.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

// Makes each common mistake of a first configuration for real. The output says where the mistake is
// and what to do, and the page shows this output. `UPDATE=1` updates the page: then read it as the
// person who has to fix the mistake.
const file = new URL('../../docs/first-mistakes.md', import.meta.url)
const page = readFileSync(file, 'utf8')
const clientSecret = 'correct horse battery staple'

/** A correct provider, application and file, in which a mistake is made. */
interface Surroundings {
  readonly port: number
  readonly url: string
  readonly provider: TestProvider
  readonly applicationPort: number
}

let at: Surroundings
/** Functions that stop everything at the end. */
const over: (() => unknown)[] = []

before(async () => {
  const scope = { after: (end: () => unknown) => void over.push(end) } as unknown as TestContext
  const port = await freePort()
  const url = `http://localhost:${port}`
  const provider = await startProvider(scope, {
    client_id: 'orders',
    client_secret: clientSecret,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
  const application = createServer((_, res) => res.end('the application'))
  await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve))
  over.push(() => application.close())
  at = { port, url, provider, applicationPort: (application.address() as AddressInfo).port }
})
after(async () => {
  for (const end of over.reverse()) await end()
})

/** The correct file with one change. */
function yaml(change: (text: string) => string = (text) => text): string {
  return change(`version: 1
listen: 127.0.0.1:${at.port}
external_url: ${at.url}
provider:
  issuer: ${at.provider.issuer}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams:
  orders:
    url: http://127.0.0.1:${at.applicationPort}
    headers: { X-Remote-User: sub }
log: { format: pretty, access: false }
`)
}

type Env = Readonly<Record<string, string | undefined>>

/** Runs a command next to the file. */
function gatehouse(t: TestContext, command: string, text: string, env: Env = {}): Command {
  const cwd = folderWith(t, { 'gateway.yaml': text })
  return startCommand(t, [command, '--config', 'gateway.yaml'], {
    cwd,
    env: { CLIENT_SECRET: clientSecret, ...env },
  })
}

/** The output of a command that ends by itself. */
async function printed(t: TestContext, command: string, text: string, env?: Env): Promise<string> {
  const run = gatehouse(t, command, text, env)
  await run.ended
  const out = command === 'run' ? '' : run.out()
  return `$ gatehouse ${command} --config gateway.yaml\n${run.err()}${out}`
}

/** Starts a gateway, and returns the log lines with a message. */
async function running(t: TestContext, text: string, env?: Env) {
  const run = gatehouse(t, 'run', text, env)
  const lines = (message: string) =>
    run
      .out()
      .split('\n')
      .filter((line) => line.split(' ').filter((word) => word !== '')[2] === message)
  await until('it is ready', () => lines('gatehouse').length > 0 || run.child.exitCode !== null)
  return {
    stop: () => {
      run.child.kill()
      return run.ended
    },
    logged: async (message: string) => {
      const told = () => lines(message)[0]
      await until(`the log has ${message}`, () => told() !== undefined)
      return `$ gatehouse run --config gateway.yaml\n${told()}\n`
    },
  }
}

/** Starts a gateway on a machine whose clock is wrong by this number of ms. */
function startWithClock(t: TestContext, offMs: number) {
  const off = `const now = Date.now; Date.now = () => now() + ${offMs}`
  return running(t, yaml(), { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(off)}` })
}

/** The text of a page, without markup. */
function readPage({ status, body }: Pick<Visit, 'status' | 'body'>): string {
  const [, main = body] = /<main[^>]*>([^]*)<\/main>/.exec(body) ?? []
  const lines = main
    .replaceAll(/<(?:br|\/p|\/h1|\/li|\/div|\/nav)[^>]*>/g, '\n')
    .replaceAll(/<[^>]+>/g, '')
    .split('\n')
    .map((line) => line.replaceAll('&quot;', '"').replaceAll('&#39;', "'").trim())
    .filter((line) => line !== '')
  return `\n(in the browser, ${status})\n${lines.join('\n')}\n`
}

/** Replaces ports, ids and times by those of the page. */
function asShown(text: string): string {
  const issuerPort = new URL(at.provider.issuer).port
  return text
    .replaceAll(String(at.port), '8080')
    .replaceAll(issuerPort, '8081')
    .replaceAll(String(at.applicationPort), '3000')
    .replaceAll(/^\d\d:\d\d:\d\d\.\d{3}/gm, '12:34:56.789')
    .replaceAll(/\b(request=|Request ID )[\w-]{16}/g, '$1a5n2Zd7CKx8wV0cR')
    .replaceAll(/\b(pid=)\d+/g, '$1123')
    .trimEnd()
}

interface Mistake {
  readonly title: string
  /** The place and the fix that the output must contain. */
  readonly says: readonly RegExp[]
  readonly make: (t: TestContext) => Promise<string>
}

const mistakes: readonly Mistake[] = [
  {
    title: 'A typing mistake in the file',
    says: [/gateway\.yaml:11:5/, /did you mean "headers"\?/],
    make: (t) =>
      printed(
        t,
        'check',
        yaml((text) => text.replace('headers:', 'headrs:')),
      ),
  },
  {
    title: 'The secret is not there',
    says: [/gateway\.yaml:7:25/, /CLIENT_SECRET/, /set|export/],
    make: (t) => printed(t, 'run', yaml(), { CLIENT_SECRET: undefined }),
  },
  {
    title: 'The issuer is not spelt as the provider spells it',
    says: [/provider\.unavailable/, /its issuer is/, /set provider\.issuer to this value/],
    make: async (t) => {
      const gateway = await running(
        t,
        yaml((text) => text.replace(at.provider.issuer, `${at.provider.issuer}/`)),
      )
      const logged = await gateway.logged('provider.unavailable')
      return logged + readPage(await new Browser('jane').get(`${at.url}/orders`))
    },
  },
  {
    title: 'There is no provider at the issuer',
    says: [/provider\.unavailable/, /ECONNREFUSED/, /compare the port with provider\.issuer/],
    make: async (t) => {
      const nobody = await freePort()
      const gateway = await running(
        t,
        yaml((text) => text.replace(at.provider.issuer, `http://127.0.0.1:${nobody}`)),
      )
      return (await gateway.logged('provider.unavailable')).replaceAll(String(nobody), '9999')
    },
  },
  {
    title: 'The issuer lacks the realm or tenant',
    says: [
      /provider\.unavailable/,
      /\/\.well-known\/openid-configuration: it responded with status 404/,
      /realms\/REALM/,
    ],
    make: async (t) => {
      const gateway = await running(
        t,
        yaml((text) => text.replace(at.provider.issuer, `${at.provider.issuer}/forgotten`)),
      )
      return gateway.logged('provider.unavailable')
    },
  },
  {
    title: 'The redirect URI is not registered',
    says: [/redirect URI +http:\/\/localhost:8080\/\.gateway\/callback/, /redirect_uri did not match/],
    make: async (t) => {
      const text = yaml((text) => `${text}reserved_prefix: /.gateway/\n`)
      const checked = await printed(t, 'check', text)
      await running(t, text)
      return checked + readPage(await new Browser('jane').get(`${at.url}/orders`))
    },
  },
  {
    title: 'The client secret is another one',
    says: [/sign_in\.failed/, /status 401/, /check provider\.client_id, client_secret/],
    make: async (t) => {
      const gateway = await running(t, yaml(), { CLIENT_SECRET: 'the secret of another client' })
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      return (await gateway.logged('sign_in.failed')) + readPage(visit)
    },
  },
  {
    title: 'The clock is off',
    says: [
      /is 600 s ahead of the clock of this machine: synchronize the clocks/,
      /has expired.*: synchronize the clocks/,
    ],
    make: async (t) => {
      const fast = await startWithClock(t, 7_200_000)
      await new Browser('jane').get(`${at.url}/orders`)
      const [, told] = (await fast.logged('sign_in.failed')).split('\n')
      await fast.stop()
      const slow = await startWithClock(t, -600_000)
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      const logged = await slow.logged('sign_in.failed')
      return `${logged.replace(/is \d+ s ahead/, 'is 600 s ahead')}${told}\n${readPage(visit)}`
    },
  },
  {
    title: 'A scope that the provider does not know',
    says: [/sign_in\.failed/, /invalid_scope/, /Invalid scopes: openid offline_access/, /check provider\.scopes/],
    make: async (t) => {
      // The demo provider ignores an unknown scope. Other providers do this (RFC 6749 §4.1.2.1).
      const heal = at.provider.fault('/oauth/authorize', (req, res) => {
        const asked = new URL(req.url ?? '', at.provider.issuer).searchParams
        const back = new URL(asked.get('redirect_uri') ?? '')
        back.search = new URLSearchParams({
          error: 'invalid_scope',
          error_description: 'Invalid scopes: openid offline_access',
          state: asked.get('state') ?? '',
          iss: at.provider.issuer,
        }).toString()
        res.writeHead(303, { location: back.href }).end()
      })
      t.after(heal)
      const gateway = await running(t, yaml())
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      return (await gateway.logged('sign_in.failed')) + readPage(visit)
    },
  },
  {
    title: 'http where it should be https',
    says: [/gateway\.yaml:3:15/, /can read the session cookie/, /serve browsers over https/],
    make: (t) =>
      printed(
        t,
        'check',
        yaml((text) => text.replace(at.url, 'http://orders.example.com')),
      ),
  },
  {
    title: 'The application is opened under another address than external_url',
    says: [/sign_in\.not_started/, /external_url/, /localhost/],
    make: async (t) => {
      const gateway = await running(t, yaml())
      const visit = await new Browser('jane').get(`http://127.0.0.1:${at.port}/orders`)
      return (await gateway.logged('sign_in.not_started')) + readPage(visit)
    },
  },
  {
    title: 'Nothing serves this host',
    says: [/request\.refused/, /ERR_NO_ROUTE/, /hosts/],
    make: async (t) => {
      const gateway = await running(
        t,
        yaml((text) => text.replace('    url:', '    hosts: [orders.example.com]\n    url:')),
      )
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      return (await gateway.logged('request.refused')) + readPage(visit)
    },
  },
  {
    title: 'The application is not there',
    says: [/upstream\.failed/, /ECONNREFUSED/, /url/],
    make: async (t) => {
      const nobody = await freePort()
      const gateway = await running(
        t,
        yaml((text) => text.replace(String(at.applicationPort), String(nobody))),
      )
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      const shown = (await gateway.logged('upstream.failed')) + readPage(visit)
      return shown.replaceAll(String(nobody), '3000')
    },
  },
  {
    title: 'Redis wants a password',
    says: [/store\.unavailable/, /NOAUTH/, /password/],
    make: async (t) => {
      const redis = await startRedis(t, { password: 'of the redis' })
      const store = `session:\n  keys: [{ env: SESSION_KEY }]\n  store: { redis: { url: "redis://127.0.0.1:${redis.port}" } }\n`
      const gateway = await running(
        t,
        yaml((text) => `${text}${store}`),
        {
          SESSION_KEY: Buffer.alloc(32, 7).toString('base64'),
        },
      )
      const visit = await new Browser('jane').get(`${at.url}/orders`)
      const shown = (await gateway.logged('store.unavailable')) + readPage(visit)
      // Valkey writes its parameters in another way.
      return shown.replaceAll(String(redis.port), '6379').replace('HELLO <proto> AUTH', 'HELLO AUTH')
    },
  },
  {
    title: 'The port is taken',
    says: [/8080/, /is in use/, /another/],
    make: async (t) => {
      const other = createServer()
      await new Promise<void>((resolve) => other.listen(at.port, '127.0.0.1', resolve))
      t.after(() => other.close())
      return printed(t, 'run', yaml())
    },
  },
]

for (const { title, says, make } of mistakes)
  test(`The output says where the mistake is and what to do: ${title}`, async (t) => {
    const shown = asShown(await make(t))

    if (process.env['UPDATE'] === '1') {
      const text = readFileSync(file, 'utf8')
      const section = new RegExp(`(^## ${title}\n[^]*?^\`\`\`text\n)[^]*?(^\`\`\`$)`, 'm')
      writeFileSync(
        file,
        text.replace(section, (_, head: string, end: string) => `${head}${shown}\n${end}`),
      )
      console.log(`## ${title}\n${shown}\n`)
    }
    for (const place of says) assert.match(shown, place)
    const [, written] = new RegExp(`^## ${title}\n[^]*?^\`\`\`text\n([^]*?)^\`\`\`$`, 'm').exec(page) ?? []
    if (process.env['UPDATE'] !== '1') assert.equal(`${shown}\n`, written)
  })

test('Every mistake on the page is made by this test', () => {
  const titles = [...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title)

  assert.deepEqual(
    titles,
    mistakes.map(({ title }) => title),
  )
})
