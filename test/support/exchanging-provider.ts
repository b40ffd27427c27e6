import { errors, type Provider } from 'oidc-provider'

export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const parameters = ['subject_token', 'subject_token_type', 'audience', 'resource', 'scope', 'requested_token_type']

/** Adds the token exchange (RFC 8693) to oidc-provider, for one audience. */
export function withTokenExchange(audience: string): (provider: Provider) => void {
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
          grantId: subject.grantId ?? '',
        } as ConstructorParameters<typeof provider.AccessToken>[0])
        token.resourceServer = new provider.ResourceServer(audience, {
          ...{ scope: 'orders', audience, accessTokenTTL: 300, accessTokenFormat: 'jwt' },
        })
        ctx.body = {
          access_token: await token.save(),
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
          expires_in: 300,
        }
      },
      parameters,
    )
}
