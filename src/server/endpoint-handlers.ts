import { refuseOtherSpelling } from '../check-requests/endpoints.ts'
import type { EndpointKey } from '../config/endpoints.ts'
import type { GatewayError } from '../core/errors.ts'
import type { DeviceParts } from '../device/parts.ts'
import { deviceRefresh } from '../device/refresh.ts'
import { deviceRegistration } from '../device/registration.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import { jwks, type JwksParts } from '../identity/signed/jwks.ts'
import { declineKeptRequest, keptRequest } from '../kept-forms/kept-request.ts'
import type { KeptParts } from '../kept-forms/send.ts'
import { backchannelLogout, rejectLogoutToken } from '../logout/backchannel.ts'
import { frontchannelLogout, rejectFrontchannelLogout } from '../logout/frontchannel.ts'
import { endOwnSessions, ownSessions } from '../logout/own-sessions.ts'
import type { LogoutParts } from '../logout/parts.ts'
import { signOut } from '../logout/sign-out.ts'
import { signedOut } from '../logout/signed-out.ts'
import type { ScriptScope } from '../pages/session-script.ts'
import { callbackPost } from '../sign-in/authorization-response.ts'
import { callback } from '../sign-in/callback.ts'
import { initiateLogin, initiateLoginPost } from '../sign-in/initiate-login.ts'
import type { SignInParts } from '../sign-in/parts.ts'
import { extendSession, session } from '../sign-in/session.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { signedIn } from '../sign-in/signed-in.ts'
import type { SignalParts } from '../signals/parts.ts'
import { rejectSecurityEvent, securityEvents } from '../signals/push.ts'
import { sessionEvents, type SessionEventsParts } from './session-events.ts'

/** What the handlers of the endpoints need. */
export type EndpointParts = SignInParts &
  LogoutParts &
  JwksParts &
  KeptParts &
  DeviceParts &
  SignalParts &
  SessionEventsParts & { readonly scope: ScriptScope }

export interface EndpointHandler {
  /** @throws {GatewayError} */
  handle(request: EndpointRequest, parts: EndpointParts): Promise<Response>
  /** The response to an error of `handle`. Absent: as for any error. */
  reject?(error: GatewayError, request: EndpointRequest, parts: EndpointParts): Response
}

/** The handler of each endpoint. */
export const endpointHandlers: Readonly<Record<EndpointKey, EndpointHandler>> = {
  signIn: { handle: signIn },
  initiateLogin: { handle: initiateLogin },
  initiateLoginPost: { handle: initiateLoginPost },
  callback: { handle: callback },
  callbackPost: { handle: callbackPost },
  signOut: { handle: signOut },
  signedOut: { handle: signedOut },
  backchannelLogout: { handle: backchannelLogout, reject: rejectLogoutToken },
  securityEvents: { handle: securityEvents, reject: rejectSecurityEvent },
  frontchannelLogout: { handle: frontchannelLogout, reject: rejectFrontchannelLogout },
  signedIn: { handle: signedIn },
  keptRequest: { handle: keptRequest },
  declineKeptRequest: { handle: declineKeptRequest },
  deviceRegistration: { handle: deviceRegistration },
  deviceRefresh: { handle: deviceRefresh },
  session: { handle: session },
  extendSession: { handle: extendSession },
  ownSessions: { handle: ownSessions },
  endOwnSessions: { handle: endOwnSessions },
  sessionScript: {
    handle: async (request, { pages, scope }) => pages.sessionScript(request, scope, request.ifNoneMatch),
  },
  events: { handle: sessionEvents },
  jwks: { handle: jwks },
  // The request handler serves these.
  forwardAuth: { handle: refuseOtherSpelling },
  authRequest: { handle: refuseOtherSpelling },
  extAuthz: { handle: refuseOtherSpelling },
  authResponse: { handle: refuseOtherSpelling },
}
