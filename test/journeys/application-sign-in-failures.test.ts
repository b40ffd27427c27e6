import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { navigation } from '../support/browser.ts'
import { type Asking, startSigningInApplication } from '../support/signing-in-application.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email }'
const right = 'jane.doe@example.com'

async function worldWith(t: TestContext, settings = form, asking?: Asking, rules = '') {
  const application = await startSigningInApplication(t, asking)
  application.passwords.set('jane', right)
  const upstreamSettings = `session_cookies: [APP, browser, "kept*"]
    application_sign_in: { ${settings} }
    ${rules}`
  const world = await startWorld(t, { upstream: application.url, upstreamSettings, store: 'memory' })
  return { application, world, jane: world.browser() }
}

const jsonSettings = `action: /login, json: { user: "{username}", pass: "{password}" }, token: token, password: { claim: email }`

/** Why sign-ins were left to the person. */
const reasons = (world: World) =>
  world.replicas
    .flatMap(({ log }) => log)
    .filter(({ message, level }) => message === 'application_sign_in.left' && level === 'warn')
    .map(({ fields }) => String(fields['reason']))

const html = (res: ServerResponse, page: string) =>
  void res
    .writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' })
    .end(`<!doctype html><title>Sign in</title>${page}`)
const fields = '<input name=user><input name=pass type=password>'

for (const [what, page, why] of [
  [
    'has other fields',
    `<form method=post action=/login><input name=user><input name=secret></form>`,
    /no form with the fields/,
  ],
  ['is sent to another origin', `<form method=post action=//evil.example/login>${fields}</form>`, /another origin/],
  ['is sent to another path', `<form method=post action=/elsewhere>${fields}</form>`, /another path/],
  ['is not understood', `<form method=post action=/login>${fields}<input type=file name=x></form>`, /has a file/],
] as const)
  test(`A form that ${what} is shown to the person, and gets no password`, async (t) => {
    const { application, world, jane } = await worldWith(t)
    const posted: string[] = []
    application.respond = (req, res) => {
      if (req.method === 'POST') posted.push(String(req.url))
      if (req.url?.startsWith('/login') !== true) return false
      html(res, page)
      return true
    }

    const shown = await jane.get(`${world.url}/orders`)

    assert.match(shown.body, /<title>Sign in<\/title>/)
    assert.match(shown.url, /\/login\?next=/)
    assert.match(String(reasons(world)), why)
    assert.deepEqual(posted, [])
  })

for (const status of [301, 302, 303, 307, 308])
  test(`The password does not follow a redirect to another origin: ${status}`, async (t) => {
    const { application, world, jane } = await worldWith(t)
    const stolen: string[] = []
    const elsewhere = createServer((req, res) => {
      stolen.push(`${req.method} ${req.url}`)
      res.end()
    })
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
    t.after(() => void elsewhere.close().closeAllConnections())
    const { port } = elsewhere.address() as AddressInfo
    application.respond = (req, res) => {
      if (req.method !== 'POST') return false
      application.attempts.push({ method: 'POST', url: '', headers: {}, content: '' })
      res.writeHead(status, { Location: `http://127.0.0.1:${port}/login` }).end()
      return true
    }

    for (let times = 0; times < 3; times += 1)
      assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)

    assert.deepEqual(stolen, [])
    assert.equal(application.attempts.length, 1)
    assert.match(String(reasons(world)), new RegExp(`responded with the status ${status}`))
  })

for (const [what, respond] of [
  ['a page with the status 200 and an error text', (res: ServerResponse) => html(res, 'The account is locked.')],
  ['an error', (res: ServerResponse) => void res.writeHead(500).end()],
  ['nothing in time', () => {}],
  [
    'half of a response',
    (res: ServerResponse) => void res.writeHead(200, { 'Content-Length': 9 }).write('x', () => res.destroy()),
  ],
  ['65 cookies', (res: ServerResponse) => cookies(res, 65)],
] as const)
  test(`After a sign-in with an unknown outcome, the gateway does not try again: ${what}`, async (t) => {
    const { application, world, jane } = await worldWith(t, `${form}, timeout: 300ms`)
    let attempts = 0
    application.respond = (req, res) => {
      if (req.method !== 'POST') return false
      attempts += 1
      respond(res)
      return true
    }

    for (let times = 0; times < 3; times += 1)
      assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)

    assert.equal(attempts, 1)
    assert.equal(reasons(world).length, 1)
    const [event] = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'application.sign_in')
    assert.equal(event?.fields['outcome'], 'failed')
    assert.equal(event?.fields['reason'], reasons(world)[0])
  })

function cookies(res: ServerResponse, count: number): void {
  const set = Array.from({ length: count }, (_, n) => `kept${n}=1; Path=/`)
  res.writeHead(303, { Location: '/', 'Set-Cookie': set }).end()
}

test('An application may set 60 cookies', async (t) => {
  const { application, world, jane } = await worldWith(t)
  application.respond = (req, res) => {
    if (req.method === 'POST') cookies(res, 60)
    else if (/kept0=1.*kept59=1/.test(req.headers.cookie ?? '')) res.end('Orders of jane')
    else return false
    return true
  }

  assert.match((await jane.get(`${world.url}/orders`)).body, /Orders of jane/)
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => name.startsWith('kept')),
    [],
  )
})

test('While the page with the form does not respond, the person gets the redirect, and later requests try again', async (t) => {
  const { application, world, jane } = await worldWith(t, `${form}, timeout: 300ms`)
  let isSlow = true
  application.respond = (req) =>
    isSlow && req.url?.startsWith('/login') === true && req.headers['user-agent'] === 'Gatehouse'
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  assert.equal((await jane.send(`${world.url}/orders`)).status, 302)
  assert.equal(application.attempts.length, 0)
  isSlow = false

  assert.match((await jane.get(`${world.url}/orders`)).body, /Orders of jane/)
})

test('An application that asks for a second factor shows it to the person', async (t) => {
  const { application, world, jane } = await worldWith(t)
  application.respond = (req, res) => {
    const path = req.url ?? ''
    if (req.method === 'POST') res.writeHead(303, { Location: '/code', 'Set-Cookie': 'APP=half; Path=/' }).end()
    else if (!/APP=half/.test(req.headers.cookie ?? '')) return false
    else if (path === '/code') html(res, '<form method=post><input name=code></form>')
    else res.writeHead(302, { Location: '/code' }).end()
    return true
  }

  const page = await jane.get(`${world.url}/orders`)

  assert.equal(page.url, `${world.url}/code`)
  assert.match(page.body, /name=code/)
})

test('An application that asks again after a sign-in shows its form, and gets no further password', async (t) => {
  const { application, world, jane } = await worldWith(t)
  application.respond = (req, res) => {
    if (req.method !== 'POST') return false
    application.attempts.push({ method: 'POST', url: '', headers: {}, content: '' })
    res.writeHead(303, { Location: '/' }).end()
    return true
  }

  for (let times = 0; times < 3; times += 1)
    assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)

  assert.equal(application.attempts.length, 1)
})

test('The rules decide whether the gateway may open the form for a person', async (t) => {
  const rules = 'rules: [{ path: /login, require: { claim: email, any_of: [nobody@example.com] } }]'
  const { application, world, jane } = await worldWith(t, form, 'redirect', rules)

  assert.equal((await jane.get(`${world.url}/orders`)).status, 403)

  assert.deepEqual(application.requests, ['GET /orders'])
  assert.match(String(reasons(world)), /the rules do not admit the person/)
})

test('A person without the claim gets the form', async (t) => {
  const { application, world, jane } = await worldWith(t, form.replace('email', 'wiki_password'))

  assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)

  assert.deepEqual([application.attempts.length, reasons(world)], [0, ['a claim for password is missing']])
})

for (const [what, coding, page] of [
  ['in gzip', 'gzip', gzipSync],
  ['in an unknown coding', 'unknown', Buffer.from],
] as const)
  test(`A page that has the form is recognized ${what}, or passed on as it is`, async (t) => {
    const { application, world, jane } = await worldWith(t, form, 'page')
    const text = `<!doctype html><title>Sign in</title><form method=post action=/login>${fields}</form>`
    application.respond = (req, res) => {
      if (req.method === 'POST') res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
      else if (/APP=1/.test(req.headers.cookie ?? '')) res.end('Orders of jane')
      else res.writeHead(200, { 'Content-Type': 'text/html', 'Content-Encoding': coding }).end(page(text))
      return true
    }

    const shown = await jane.get(`${world.url}/orders`)

    assert.match(shown.body, coding === 'gzip' ? /Orders of jane/ : /<title>Sign in/)
  })

for (const [what, coding, content] of [
  ['gzip', 'gzip', gzipSync],
  ['Brotli', 'br', brotliCompressSync],
  ['an unknown coding', 'unknown', Buffer.from],
  ['what is not gzip', 'gzip', Buffer.from],
] as const)
  test(`The page with the form, which the gateway opens, is read in ${what}, or left to the person`, async (t) => {
    const { application, world, jane } = await worldWith(t)
    const page = `<!doctype html><title>Sign in</title><form method=post action=/login>${fields}</form>`
    application.respond = (req, res) => {
      if (req.method === 'POST') res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
      else if (/APP=1/.test(req.headers.cookie ?? '')) res.end('Orders of jane')
      else if (!req.url?.startsWith('/login')) return false
      else res.writeHead(200, { 'Content-Type': 'text/html', 'Content-Encoding': coding }).end(content(page))
      return true
    }
    await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

    const shown = await jane.send(`${world.url}/orders`)

    const isRead = content !== Buffer.from
    assert.deepEqual(
      [shown.status, shown.headers['location']],
      isRead ? [200, undefined] : [302, '/login?next=%2Forders'],
    )
    assert.match(String(reasons(world)), isRead ? /^$/ : /cannot be decoded/)
  })

test('A page with the form that breaks off leads to no sign-in', async (t) => {
  const { application, world, jane } = await worldWith(t, form, 'page')
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  application.respond = (req, res) => {
    if (req.method === 'POST') return false
    res.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': 9999 })
    res.write(`<form method=post action=/login>${fields}</form>`, () => res.destroy())
    return true
  }

  assert.equal((await jane.send(`${world.url}/orders`)).status, 502)

  assert.deepEqual(application.attempts, [])
})

test('A long or slow page is passed on as it arrives', async (t) => {
  const { application, world, jane } = await worldWith(t)
  const long = `<form method=post action=/login>${fields}</form>${'x'.repeat(300 * 1024)}`
  let finish = () => {}
  application.respond = (req, res) => {
    const isSlow = req.url === '/slow'
    if (!isSlow && req.url !== '/long') return false
    res.writeHead(200, { 'Content-Type': 'text/html' })
    if (isSlow) {
      res.write('the beginning')
      finish = () => void res.end(' and the end')
    } else res.end(long)
    return true
  }
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  assert.equal((await jane.get(`${world.url}/long`)).body, long)
  assert.deepEqual(application.attempts, [])
  const cookie = [...jane.cookies].map(([name, { value }]) => `${name}=${value}`).join('; ')
  const sent = get(`${world.url}/slow`, { headers: { ...navigation, cookie }, agent: false })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  response.setEncoding('utf8').on('data', (part: string) => (text += part))
  await until('the beginning has arrived', () => text === 'the beginning')
  finish()
  await once(response, 'end')
  assert.equal(text, 'the beginning and the end')
})

for (const [what, settings, respond, why] of [
  [
    'a name with a colon for Basic',
    'basic: true, username: { value: "a:b" }, password: { claim: email }',
    undefined,
    /a name with a colon/,
  ],
  ['JSON without the token', jsonSettings, (res: ServerResponse) => void res.end('{"other":1}'), /no token in token/],
  ['no JSON', jsonSettings, (res: ServerResponse) => void res.end('<p>Hello'), /no token in token/],
  [
    'a token that is no bearer token',
    jsonSettings,
    (res: ServerResponse) => void res.end('{"token":"a\\r\\nb"}'),
    /no token in token/,
  ],
] as const)
  test(`A sign-in is left to the person: ${what}`, async (t) => {
    const { application, world, jane } = await worldWith(t, settings, settings === jsonSettings ? 'json' : 'basic')
    application.respond = (req, res) => {
      if (req.method !== 'POST' || respond === undefined) return false
      respond(res)
      return true
    }

    assert.equal((await jane.get(`${world.url}/orders`)).status, 401)

    assert.match(String(reasons(world)), why)
  })

test('A redirect that would send the password again is not followed, and is no success', async (t) => {
  const { application, world, jane } = await worldWith(t)
  let posts = 0
  application.respond = (req, res) => {
    if (req.method !== 'POST') return false
    posts += 1
    res.writeHead(307, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
    return true
  }

  assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)

  assert.equal(posts, 1)
  assert.match(String(reasons(world)), /responded with the status 307/)
})

for (const charset of ['iso-8859-1', 'utf-8'])
  test(`A password with other characters than ASCII needs a form in UTF-8: ${charset}`, async (t) => {
    const { application, world, jane } = await worldWith(t, form.replace('email', 'given_name'))
    const posted: string[] = []
    application.respond = (req, res, content) => {
      if (req.method === 'POST') posted.push(content)
      if (req.url?.startsWith('/login') !== true) return false
      res.writeHead(200, { 'Content-Type': `text/html; charset=${charset}` })
      res.end(`<title>Sign in</title><form method=post action=/login>${fields}<input name=x value=ä></form>`)
      return true
    }

    await jane.get(`${world.url}/orders`)

    assert.deepEqual(posted, charset === 'utf-8' ? ['user=jane&pass=Jane&x=%C3%A4'] : [])
  })

test('When the session ends during the sign-in, that of the application ends too', async (t) => {
  const { application, world, jane } = await worldWith(t, form, 'redirect', 'logout: { call: /logout }')
  let loggedOut = ''
  application.respond = (req, res) => {
    if (req.url === '/logout') {
      loggedOut = String(req.headers.cookie)
      res.end()
      return true
    }
    if (req.method !== 'POST') return false
    const [session] = world.provider.sessions()
    void world.provider
      .logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
      .then((logout_token) => world.postLogoutToken({ logout_token }))
      .then(() => res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=late; Path=/' }).end())
    return true
  }
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  const page = await jane.send(`${world.url}/orders`)

  assert.notEqual(page.status, 200)
  await until('the application was told', () => /APP=late/.test(loggedOut))
})

test('A text of a page can be a question, and a refusal', async (t) => {
  const texts = 'asks: { contains: "You are not signed in" }, refusal: { contains: "Wrong password" }'
  const { application, world, jane } = await worldWith(t, `${form}, ${texts}`)
  let posts = 0
  application.respond = (req, res) => {
    if (req.method === 'POST') {
      posts += 1
      html(res, 'Wrong password')
    } else if (req.url === '/wiki') html(res, 'You are not signed in. <a href=/login>Sign in</a>')
    else if (req.url === '/image') res.setHeader('Content-Type', 'image/svg+xml').end('You are not signed in')
    else if (req.url === '/page') html(res, 'Welcome')
    else return false
    return true
  }

  for (const path of ['/page', '/image']) assert.equal((await jane.get(world.url + path)).status, 200)
  assert.equal(posts, 0)
  for (let times = 0; times < 2; times += 1) assert.match((await jane.get(`${world.url}/wiki`)).body, /You are not/)
  assert.equal(posts, 1)
  assert.deepEqual(reasons(world), ['the application has refused the password'])
})

test('Where the configuration says what a refusal is, another page with the form is not one', async (t) => {
  const { application, world, jane } = await worldWith(t, `${form}, refusal: { contains: "Wrong password" }`)
  application.respond = (req, res) => {
    if (req.method !== 'POST') return false
    html(res, `Too many people sign in. <form method=post action=/login>${fields}</form>`)
    return true
  }

  await jane.get(`${world.url}/orders`)

  assert.deepEqual(reasons(world), ['the application responded with the status 200'])
})

for (const [settings, status, location, outcome] of [
  ['', 303, '/login?error=1', 'refused'],
  ['success: { cookie: APP }', 303, '/locked', 'failed'],
  ['success: { path: /home }', 303, '/home', 'done'],
  ['success: { path: /home }', 303, '/locked', 'failed'],
  ['success: { path: /home }', 200, '/home', 'failed'],
  ['refusal: { path: /wrong }', 303, '/wrong', 'refused'],
  ['refusal: { path: /wrong }', 303, '/home', 'done'],
] as const)
  test(`A response to a sign-in with the status ${status} and Location: ${location} is: ${outcome}. ${settings}`, async (t) => {
    const { application, world, jane } = await worldWith(t, `${form}, ${settings}`)
    application.respond = (req, res) => {
      if (req.method !== 'POST') return false
      res.writeHead(status, { Location: location, 'Set-Cookie': 'kept=1; Path=/' }).end()
      return true
    }

    await jane.get(`${world.url}/orders`)

    const events = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'application.sign_in')
    assert.deepEqual(
      events.map(({ fields }) => fields['outcome']),
      [outcome],
    )
  })

for (const [status, why] of [
  [400, 'the application has refused the password'],
  [401, 'the application has refused the password'],
  [403, 'the application has refused the password'],
  [404, 'the application responded with the status 404'],
  [500, 'the application responded with the status 500'],
] as const)
  test(`The status ${status} of a sign-in with JSON means: ${why}`, async (t) => {
    const { application, world, jane } = await worldWith(t, jsonSettings, 'json')
    application.respond = (req, res) => {
      if (req.method !== 'POST') return false
      res.writeHead(status).end('{}')
      return true
    }

    assert.equal((await jane.get(`${world.url}/orders`)).status, 401)

    assert.deepEqual(reasons(world), [why])
  })

test('The page with the form is opened where the response that asks does not lead to it', async (t) => {
  const { application, world, jane } = await worldWith(t, `${form}, action: /enter, asks: { status: 403 }`)
  application.respond = (req, res) => {
    if (req.url === '/login') html(res, `<form method=post action=/enter>${fields}</form>`)
    else if (req.url === '/enter' && req.method === 'POST')
      res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
    else if (/APP=1/.test(req.headers.cookie ?? '')) res.end('Orders of jane')
    else res.writeHead(403).end()
    return true
  }

  assert.match((await jane.get(`${world.url}/orders`)).body, /Orders of jane/)
})

test('Without a session, a public path gets the response of the application', async (t) => {
  const rules = 'rules: [{ path: /orders, access: public }]'
  const { application, world, jane } = await worldWith(t, form, 'redirect', rules)

  assert.equal((await jane.send(`${world.url}/orders`)).headers['location'], '/login?next=%2Forders')

  assert.deepEqual([application.requests, reasons(world)], [['GET /orders'], []])
})

test('A request for a host that is no part of a URL gets the response of the application', async (t) => {
  const { world, jane } = await worldWith(t)
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  assert.equal((await jane.send(`${world.url}/orders`, { headers: { host: '1.2.3.999' } })).status, 302)
})
