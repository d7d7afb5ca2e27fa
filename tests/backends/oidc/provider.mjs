// An OpenID Connect provider on a free port, with the people of the tests: node provider.mjs REDIRECT_URI
// Prints its address. Ends with its standard input.
import http from "node:http";

import Provider from "oidc-provider";

const GROUPS = { alice: ["staff", "broker-admins"], bob: ["staff"], eve: [] };
const redirect = process.argv[2];

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = { redirect_uris: [redirect], grant_types: ["authorization_code"], response_types: ["code"] };
  const provider = new Provider(issuer, {
    clients: [
      { client_id: "broker", client_secret: "a secret: of+the broker%", ...client },
      { client_id: "public", token_endpoint_auth_method: "none", ...client },
    ],
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: `sub-${id}`, preferred_username: id, groups: GROUPS[id] ?? [] }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
  // Nobody reads what it says about itself afterwards.
  for (const level of ["log", "info", "warn"]) console[level] = () => {};
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
