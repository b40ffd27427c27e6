// A program that responds as GitHub documents its OAuth apps and its API.
import { createHash, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { type ApiServer, linked, startApi } from './claims-apis.ts'
import { sendJson } from './signing-provider.ts'

export interface GitHub extends ApiServer {
  /** The user as `GET /user` describes it. */
  user: Record<string, unknown>
  teams: readonly { readonly slug: string; readonly organization: { readonly login: string } }[]
  /** What is added to the redirect with the code, such as `iss`. */
  redirect: Readonly<Record<string, string>>
  /** The user revokes the authorization of the app. */
  revoke(): void
}

interface Code {
  readonly challenge: string
  readonly redirect_uri: string
}

export async function startGitHub(
  t: TestContext,
  client: { readonly id: string; readonly secret: string },
): Promise<GitHub> {
  const codes = new Map<string, Code>()
  const tokens = new Set<string>()

  const authorize = (url: URL, res: ServerResponse) => {
    const at = (name: string) => url.searchParams.get(name) ?? ''
    const code = randomUUID()
    codes.set(code, { challenge: at('code_challenge'), redirect_uri: at('redirect_uri') })
    const back = new URL(at('redirect_uri'))
    for (const [name, value] of Object.entries({ code, state: at('state'), ...github.redirect }))
      back.searchParams.set(name, value)
    res.writeHead(302, { location: back.href }).end()
  }
  /** Errors have the status 200. The code can be used once. */
  const issue = (form: URLSearchParams, accept: string | undefined, res: ServerResponse) => {
    const code = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const hash = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient = form.get('client_id') === client.id && form.get('client_secret') === client.secret
    const error = !isClient
      ? 'incorrect_client_credentials'
      : code?.challenge !== hash || code.redirect_uri !== form.get('redirect_uri')
        ? 'bad_verification_code'
        : undefined
    const access_token = `gho_${randomUUID()}`
    if (error === undefined) tokens.add(access_token)
    const body = error === undefined ? { access_token, scope: 'read:org,user:email', token_type: 'bearer' } : { error }
    if (accept === 'application/json') sendJson(res, body)
    else
      res.writeHead(200, { 'content-type': 'application/x-www-form-urlencoded' }).end(String(new URLSearchParams(body)))
  }

  const api = await startApi(t, (req, res, url) => {
    if (url.pathname === '/login/oauth/authorize') return authorize(url, res)
    if (url.pathname === '/login/oauth/access_token') {
      let body = ''
      req.setEncoding('utf8').on('data', (part: string) => (body += part))
      req.on('end', () => issue(new URLSearchParams(body), req.headers.accept, res))
      return undefined
    }
    if (req.headers['user-agent'] === undefined) return res.writeHead(403).end('Request forbidden')
    if (!tokens.has((req.headers.authorization ?? '').slice('Bearer '.length)))
      return sendJson(res, { message: 'Bad credentials', status: '401' }, 401)
    if (url.pathname === '/user') return sendJson(res, github.user)
    if (url.pathname === '/user/teams') {
      const list = github.teams.map(({ slug, organization }) => ({
        ...{ slug, organization },
        html_url: `https://github.com/orgs/${organization.login}/teams/${slug}`,
      }))
      return linked(list)(req, res, url)
    }
    return sendJson(res, { message: 'Not Found' }, 404)
  })
  const github: GitHub = {
    ...api,
    user: { login: 'octocat', id: 583_231, name: 'Mona', email: null, sub: 'admin', iss: 'https://evil.example' },
    teams: [],
    redirect: {},
    revoke: () => tokens.clear(),
  }
  return github
}
