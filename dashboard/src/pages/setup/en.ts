export default {
  title: 'Choose the administrator’s password',
  lead: 'This link works once. Nobody can sign in before you finish.',
  name: 'Name',
  password: 'Password',
  'password.short': '{n} of at least 12 characters; a sentence is fine.',
  'password.good': 'Good: {n} {n|character|characters}.',
  submit: 'Finish and open the dashboard',
  busy: 'One moment…',
  'no.link': 'The address has no setup link in it.',
  'no.link.text':
    'Open the whole link that the broker printed. A new one comes from this command, on the machine of the broker:',
  plain: 'This page is not encrypted. Use TLS, or open it on the machine of the broker.',
  'plain.here': 'This page is not encrypted, but it comes from **this machine**. From elsewhere, use TLS.',
  again: 'A new link:',
  problem: '{detail}. {remedy}.',
} as const;
