/** What a request has instead of a session: credentials of its own. */
export type Caller = 'access_token' | 'service_account'
