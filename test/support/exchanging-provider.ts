import { errors, type Provider } from 'oidc-provider'

export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const parameters = ['subject_token', 'subject_token_type', 'audience', 'resource', 'scope', 'requested_token_type']

/**
 * Adds the token exchange (RFC 8693) to oidc-provider, for one audience. It revokes no JWTs. Opaque
 * tokens do not end with the grant of the token that they came from.
 */
export function withTokenExchange(
  audience: string,
  { format = 'jwt', ttl = 300 }: { readonly format?: 'jwt' | 'opaque'; readonly ttl?: number } = {},
): (provider: Provider) => void {
  return (provider) =>
    provider.registerGrantType(
      exchangeGrant,
      async (ctx) => {
        const { client, params } = ctx.oidc
        const subject = await provider.AccessToken.find(String(params?.['subject_token']))
        if (subject === undefined || client === undefined) throw new errors.InvalidRequest('unknown subject_token')
        if (params?.['audience'] !== audience) throw new errors.InvalidTarget('unknown audience')
        const token = new provider.AccessToken({
          ...{ client, accountId: subject.accountId, scope: 'orders', gty: 'token-exchange' },
          grantId: (format === 'jwt' ? subject.grantId : undefined) ?? '',
        } as ConstructorParameters<typeof provider.AccessToken>[0])
        token.resourceServer = new provider.ResourceServer(audience, {
          ...{ scope: 'orders', audience, accessTokenTTL: ttl, accessTokenFormat: format },
        })
        ctx.body = {
          access_token: await token.save(),
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
          expires_in: ttl,
        }
      },
      parameters,
    )
}
