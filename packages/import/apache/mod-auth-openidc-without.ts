import { withoutTranslationOf } from '../common/notes.ts'

const discovered = 'the gateway discovers it from the issuer'

/** Why a directive of mod_auth_openidc has no setting here: it is not needed, or not supported. */
export const withoutTranslation = withoutTranslationOf({
  unneeded: {
    'oidcproviderauthorizationendpoint oidcprovidertokenendpoint oidcprovideruserinfoendpoint oidcproviderjwksuri oidcproviderendsessionendpoint oidcproviderrevocationendpoint oidcproviderchecksessioniframe oidcproviderpushedauthorizationrequestendpoint':
      discovered,
    'oidccachedir oidccacheencrypt oidccachefilecleaninterval oidccacheshmentrysizemax oidccacheshmmax oidcsessiontype oidcsessioncachefallbacktocookie oidcsessioncookiechunksize':
      'session.store says where sessions are, encrypted',
    oidcresponsetype: 'it is always code',
    oidcpkcemethod: 'PKCE with S256 is always used',
    'oidccookiehttponly oidccookiepath': 'the cookie is always HttpOnly, for all paths',
    oidcstripcookies: 'the application never receives the cookies of the gateway',
    oidcpasscookies: 'no cookies of browsers are sent to the provider',
    'oidcstatetimeout oidcstatemaxnumberofcookies oidcstatecookieprefix oidcstateinputheaders':
      'a started sign-in has a time limit of its own',
    'oidcproviderbackchannellogoutsupported oidcbackchannellogoutsupported':
      'it is always on; register the address of docs/migrating/mod_auth_openidc.md at the provider',
    'oidcjwksrefreshinterval oidcprovidermetadatarefreshinterval': 'keys and metadata are refreshed when they change',
    'oidcpreservepost oidcpreserveposttemplates': 'kept_requests keeps forms',
    'oidcdebugmasksecrets oidctraceparent': 'the log contains no secret',
    oidcuserinfotokenmethod: 'the access token is in the Authorization header',
  },
  changed: {
    'oidchttptimeoutlong oidchttptimeoutshort': 'provider.timeout is 5s',
    oidcidtokeniatslack: 'provider.clock_tolerance is 30s',
    oidcdefaulturl: 'a sign-in without a page leads to /',
    oidcdefaultloggedouturl: 'after signing out, people see a page of the gateway',
    oidcrefreshaccesstokenbeforeexpiry: 'tokens are refreshed 60s before they expire (session.refresh_before)',
    oidcuserinforefreshinterval: 'write session.poll_userinfo, if claims must be refreshed more often than tokens',
    oidcxforwardedheaders: 'write the proxies in front of the gateway in trusted_proxies',
    'oidcinfohook oidcmetricsdata oidcmetricspublish': '/.gatehouse/session and admin.listen have other contents',
    'oidcunautzaction oidcauthzsendforbiddenonfailure':
      'people without access get 403, with a link to sign in as another person',
    oidclogoutxframeoptions: 'front-channel logout is on with provider.frontchannel_logout',
    'oidcredirecturlsallowed oidcdiscoverissuersallowed':
      'the gateway redirects only to hosts that an external_url names',
    oidcpassrefreshtoken: 'applications never receive refresh tokens',
    'oidcrediscacheconnecttimeout oidcrediscachetimeout': 'session.store.redis.timeout is the limit',
    'oidcpathscope oidcpathauthrequestparams': 'scopes and parameters are the same for all paths',
    oidclogoutrequestparams: 'write provider.end_session_params',
  },
  lost: {
    'oidcsslvalidateserver oidcvalidateissuer oidcoauthsslvalidateserver':
      'certificates and issuers are always verified; name the CA in provider.ca_file',
    'oidcmetadatadir oidcdiscoverurl oidcproviderregistrationendpointjson':
      'several providers are below providers: see docs/several-providers.md',
    'oidcmemcacheservers oidcmemcacheconnectionshmax oidcmemcacheconnectionsmin oidcmemcacheconnectionssmax oidcmemcacheconnectionsttl':
      'sessions are in memory, in a file or in Redis',
    'oidcclientname oidcclientcontact oidcclientjwksuri': 'the gateway does not register itself at providers',
    'oidcclienttokenendpointcert oidcclienttokenendpointkey oidcclienttokenendpointkeypassword oidcprivatekeyfiles oidcpublickeyfiles oidcprofile oidcdpopmode oidcrequestobject oidcproviderauthrequestmethod':
      'see docs/provider-client.md for keys and certificates of the client',
    'oidcidtokenencryptedresponsealg oidcidtokenencryptedresponseenc oidcuserinfosignedresponsealg oidcuserinfoencryptedresponsealg oidcuserinfoencryptedresponseenc oidcprovidersignedjwksuri oidcproviderverifycertfiles oidcidtokenaudvalues oidcprovidertokenendpointparams':
      'see docs/provider-client.md',
    'oidcoauthaccepttokenas oidcoauthclientid oidcoauthclientsecret oidcoauthdecryptsharedkeys oidcoauthintrospectionclientauthbearertoken oidcoauthintrospectionendpoint oidcoauthintrospectionendpointauth oidcoauthintrospectionendpointcert oidcoauthintrospectionendpointkey oidcoauthintrospectionendpointkeypassword oidcoauthintrospectionendpointmethod oidcoauthintrospectionendpointparams oidcoauthintrospectiontokenparamname oidcoauthremoteuserclaim oidcoauthservermetadataurl oidcoauthtokenexpiryclaim oidcoauthtokenintrospectioninterval oidcoauthverifyaudience oidcoauthverifycertfiles oidcoauthverifyissuer oidcoauthverifyjwksuri oidcoauthverifysharedkeys oidccertboundaccesstokens':
      'requests with access tokens are denied; write access_tokens of the upstream and access_tokens: true in the rules of the API: see docs/apis.md',
  },
  decide: {
    'oidcfilterclaimsexpr oidcuserinfoclaimsexpr':
      'it changes the claims that Require compares; compare the claims of the provider instead',
  },
})
