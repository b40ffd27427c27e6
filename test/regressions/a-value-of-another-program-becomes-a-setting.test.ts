import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { translateApache } from '../../packages/import/apache/mod-auth-openidc.ts'
import { readFlatToml } from '../../packages/import/common/flat-toml.ts'
import { translate } from '../../packages/import/oauth2-proxy/oauth2-proxy.ts'
import { translatePomerium } from '../../packages/import/pomerium/pomerium.ts'
import { firstFile } from '../../packages/setup/first-file.ts'

const settings = [
  'version',
  'listen',
  'external_url',
  'reserved_prefix',
  'trusted_proxies',
  'admin',
  'provider',
  'session',
  'log',
]
const known = new Set([...settings, 'upstreams'])

const breaks = ['\n', '\r\n', '\u0085', '\u2028', '\u2029', '\n\u2028', ' \n', '\n# ', `${'x'.repeat(60)}\n`]

for (const lineBreak of breaks)
  test(`A value with a line break (${JSON.stringify(lineBreak)}) stays a value`, () => {
    const value = `a${lineBreak}trusted_proxies: [0.0.0.0/0]${lineBreak}b: c`
    const quoted = JSON.stringify(value).replaceAll(
      /[\u0085\u2028\u2029]/g,
      (c) => `\\u${c.codePointAt(0)?.toString(16).padStart(4, '0')}`,
    )
    const oauth2Proxy = translate(
      readFlatToml(
        [
          'acr_values',
          'client_id',
          'scope',
          'prompt',
          'redis_username',
          'cookie_domains',
          'allowed_groups',
          'unheard_of',
        ]
          .map((name) => `${name} = ${quoted}\n`)
          .join('') + 'email_domains = ["*"]\nprovider = "oidc"\nupstreams = ["http://127.0.0.1:3000"]\n',
      ),
      'https://orders.example.com',
    )
    const pomerium = translatePomerium(
      [
        {
          name: 'config.yaml',
          text: `idp_client_id: ${quoted}\nidp_scopes: [${quoted}]\n${quoted}: 1\nroutes:\n- from: https://a.example.com\n  to: http://127.0.0.1:3000\n  set_request_headers: { X-A: ${quoted} }\n  policy: [{ allow: { or: [{ ${quoted}: 1 }, { email: { is: ${quoted} } }] } }]\n`,
        },
      ],
      undefined,
    )
    const apache = translateApache(
      [
        {
          name: 'site.conf',
          text: `ServerName a.example.com\nProxyPass / http://127.0.0.1:3000/\nOIDCClientID "${value.replaceAll(/[\r\n]/g, '\u2028')}"\n<Location />\nAuthType openid-connect\nRequire claim "groups:a\u2028version: 2"\nSSLRequire "\u2028x: y"\n</Location>\n`,
        },
      ],
      [],
      undefined,
    )
    const first = firstFile({
      ...{ issuer: 'https://id.example.com', client_id: value, url: 'https://a.example.com' },
      ...{ upstream: 'http://127.0.0.1:3000', store: 'file:/a\u2028b: c' },
    })

    for (const yaml of [oauth2Proxy.yaml, pomerium.yaml, apache.yaml, first]) {
      const file = parse(yaml) as Record<string, unknown>
      assert.deepEqual(
        Object.keys(file).filter((name) => !known.has(name)),
        [],
      )
      assert.equal(file['trusted_proxies'], undefined)
      // A reader of YAML 1.1 takes these characters for line breaks, which end a comment.
      for (const comment of yaml.split('\n').filter((line) => /^\s*#/.test(line)))
        assert.doesNotMatch(comment, /[\u0085\u2028\u2029]/)
    }
    const { provider } = parse(oauth2Proxy.yaml) as { provider: { authorization_params: Record<string, string> } }
    assert.equal(provider.authorization_params['acr_values'], value)
    assert.equal((parse(first) as { provider: { client_id: string } }).provider.client_id, value)
  })
