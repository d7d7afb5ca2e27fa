import { describe, expect, test } from 'vitest';
import { Problem } from '../../../api/problem';
import { addBan, addUser, changedRights, changeUser, duration, sayable, setRules } from './commands';
import { chainOf } from './chain';
import { meant, moved, rebased, replaced, rulesIn, same, without } from './draft';
import { formatOf, namesIn, planned } from './importFile';
import { differences, ofWhatWasSeen } from './meanwhile';
import { fieldOr, namesOf, rulesOf, toggled } from './names';

describe('lists that are typed', () => {
  test('names have commas between, and each counts once', () =>
    expect(namesOf(' a, b b,, a ')).toEqual(['a', 'b b']));
  test('a name is added, and taken away again', () => {
    expect(toggled('a', 'b')).toBe('a, b');
    expect(toggled('a, b', 'a')).toBe('b');
  });
  test('a name with a comma stays one name as long as nobody types', () => {
    expect(fieldOr(['a, b', 'c'], ', ', 'a, b, c', namesOf)).toEqual(['a, b', 'c']);
    expect(fieldOr(['a'], ', ', 'a, d', namesOf)).toEqual(['a', 'd']);
    expect(fieldOr(['a, b'], ', ', 'a, b, d', namesOf)).toEqual(['a, b', 'd']);
    expect(fieldOr(['a, b'], ', ', 'a, bc', namesOf)).toEqual(['a', 'bc']);
    expect(fieldOr(undefined, ', ', '', namesOf)).toEqual([]);
  });
  test('rules have a line each', () =>
    expect(rulesOf('allow pub a\n\n deny sub # \n')).toEqual(['allow pub a', 'deny sub #']));
});

describe('a thing that somebody else has changed', () => {
  const was = { name: 'a', roles: ['r'], groups: [], rules: ['allow pub a', 'deny sub #'], superuser: true };
  test('is told by what differs', () => {
    expect(
      differences(was, { ...was, roles: ['s'], rules: ['deny sub #', 'allow pub a'], superuser: false }),
    ).toEqual([
      { of: 'roles', added: ['s'], removed: ['r'] },
      { of: 'rules', added: [], removed: [] },
      { of: 'superuser', is: false },
    ]);
  });
  test('has another password if nothing else differs', () =>
    expect(differences(was, { ...was })).toEqual([{ of: 'password' }]));

  const refused = (status: number) => Promise.reject(problem(status));
  const problem = (status: number) => new Problem({ title: 't', status, detail: 'd', remedy: 'r' });
  test('is looked at again, and the refusal says what differs', async () => {
    const is = { ...was, superuser: false, rules: [...was.rules, 'allow pub b'] };
    await expect(ofWhatWasSeen(was, refused(412), () => Promise.resolve(is))).rejects.toMatchObject({
      status: 412,
      detail: 'a has changed since it was read: rules + allow pub b; no longer superuser',
    });
  });
  test('is told in the words of the broker if the list has it no more', () =>
    expect(ofWhatWasSeen(was, refused(412), () => Promise.resolve(undefined))).rejects.toMatchObject({
      detail: 'd',
    }));
  test('another refusal is told as it is', () =>
    expect(
      ofWhatWasSeen(was, refused(404), () => Promise.reject(new Error('asked again'))),
    ).rejects.toMatchObject({ status: 404, remedy: 'r' }));
});

describe('the command that does the same', () => {
  test('has no password', () =>
    expect(
      addUser({
        name: 'meter 7',
        roles: ['meter'],
        groups: [],
        rules: ['allow pub a/#', 'deny sub #'],
        superuser: false,
        scram: true,
      }),
    ).toBe("thrum users add 'meter 7' --role meter --allow 'pub a/#' --deny 'sub #' --scram"));
  test('a change says what differs, unless the command cannot say it', () => {
    expect(changeUser('a', { groups: ['g'], disabled: true })).toBe(
      'thrum users change a --group g --disabled true',
    );
    expect(changeUser('a', { rules: [], superuser: false })).toBe(
      'thrum users change a --no-rules --superuser false',
    );
    expect(changeUser('a', { roles: [], groups: [] })).toBe('thrum users change a --no-roles --no-groups');
    expect(changeUser('a', { rules: ['allow pub a', 'deny sub #'] })).toBeNull();
  });
  test('roles and groups', () => {
    expect(setRules('role', 'r', [], ['allow pub a'])).toBe("thrum roles set r --allow 'pub a'");
    expect(setRules('group', 'g', ['r'], [])).toBe('thrum users groups set g --role r');
  });
  test('is not told where it would put the rules in another order', () => {
    expect(sayable(['deny sub #', 'allow pub a'])).toBe(true);
    expect(sayable(['allow pub a', 'deny sub #'])).toBe(false);
    expect(sayable([])).toBe(true);
  });
  test('bans have a duration', () => {
    expect(addBan('client_id', 'x', 3600, '', true)).toBe('thrum bans add --client-id x --for 1h');
    expect(addBan('address', '10.0.0.0/8', 0, 'too many', false)).toBe(
      "thrum bans add --address 10.0.0.0/8 --reason 'too many' --keep-connected",
    );
    expect([duration(604_800), duration(600), duration(61)]).toEqual(['7d', '10m', '61s']);
  });
});

describe('a change of a user', () => {
  const was = { roles: ['a', 'b'], groups: ['g'], rules: ['allow pub a'], superuser: true, disabled: false };
  test('has what differs, so that rights which others took away stay away', () => {
    expect(changedRights(was, { ...was })).toEqual({});
    expect(changedRights(was, { ...was, roles: ['a', 'b'], disabled: true })).toEqual({ disabled: true });
    expect(
      changedRights(was, { roles: ['a'], groups: [], rules: [], superuser: false, disabled: false }),
    ).toEqual({ roles: ['a'], groups: [], rules: [], superuser: false });
  });
});

describe('a draft of rules that others have changed meanwhile', () => {
  const base = ['a', 'b', 'c'];
  test('keeps what they added, and what was added here', () =>
    expect(rebased(base, ['a', 'mine', 'b', 'c'], ['deny', ...base])).toEqual([
      'deny',
      'a',
      'mine',
      'b',
      'c',
    ]));
  test('keeps what they removed removed, and what was removed here', () =>
    expect(rebased(base, ['a', 'c'], ['b', 'c'])).toEqual(['c']));
  test('puts a line whose neighbour is gone before the next one, else last', () => {
    expect(rebased(base, ['mine', 'a', 'b', 'c'], ['b', 'c'])).toEqual(['mine', 'b', 'c']);
    expect(rebased(['a'], ['a', 'one', 'two'], ['x'])).toEqual(['x', 'one', 'two']);
  });
  test('has a line that both added once', () =>
    expect(rebased(base, [...base, 'd'], [...base, 'd'])).toEqual([...base, 'd']));
  test('keeps a line that was moved here', () =>
    expect(rebased(base, ['c', 'a', 'b'], [...base, 'deny'])).toEqual(['c', 'a', 'b', 'deny']));
  test('reads rules, and nothing else', () => {
    expect(rulesIn(['a', 1, 'b'])).toEqual(['a', 'b']);
    expect(rulesIn(null)).toEqual([]);
  });
});

describe('a draft of rules', () => {
  const rules = ['a', 'b', 'c'];
  test('moves a rule up and down, and not beyond the ends', () => {
    expect(moved(rules, 2, 1)).toEqual(['a', 'c', 'b']);
    expect(moved(rules, 0, 2)).toEqual(['b', 'c', 'a']);
    expect(moved(rules, 0, -1)).toEqual(rules);
    expect(moved(rules, 2, 3)).toEqual(rules);
  });
  test('replaces, removes, and leaves out what is empty', () => {
    expect(replaced(rules, 1, 'x')).toEqual(['a', 'x', 'c']);
    expect(without(rules, 1)).toEqual(['a', 'c']);
    expect(meant([' a ', '', ' '])).toEqual(['a']);
    expect(same(['a'], ['a', 'b'])).toBe(false);
  });
});

describe('a file to import', () => {
  test('has a form', () => {
    expect(formatOf('passwd', 'ann:$7$101$x\n')).toBe('mosquitto');
    expect(formatOf('users.csv', 'user_id,password_hash\n')).toBe('emqx-csv');
    expect(formatOf('users.json', ' [{"user_id":"a"}]')).toBe('emqx-json');
    expect(formatOf('users.jsonl', '{"user":"a"}\n')).toBe('jsonl');
  });
  test('has names', () => {
    expect(namesIn('mosquitto', '# x\nann:$7$\nbob:$6$\n\n')).toEqual(['ann', 'bob']);
    expect(namesIn('emqx-csv', 'password_hash,user_id,salt\nh,"ann",s\nh,bob,s\n')).toEqual(['ann', 'bob']);
    expect(namesIn('emqx-json', '[{"user_id":"ann"},{"username":"bob"},{}]')).toEqual(['ann', 'bob']);
    expect(namesIn('jsonl', '{"user":"ann"}\n{"role":"x"}\n')).toEqual(['ann']);
  });
  test('of another form has none', () => {
    expect(namesIn('emqx-csv', 'ann:$7$\n')).toBeNull();
    expect(namesIn('emqx-json', '{}')).toBeNull();
    expect(namesIn('jsonl', 'ann:$7$\n')).toBeNull();
  });
  test('adds those that are new, and replaces the others', () =>
    expect(planned(['a', 'b', 'a'], new Set(['b']))).toEqual({ added: ['a'], replaced: ['b'] }));
});

describe('the chain of a test', () => {
  const rule = (position: number) => ({
    position,
    rule: `rule ${position}`,
    of: 'rules',
    source: `s${position}`,
  });
  const rules = Array.from({ length: 12 }, (_, index) => rule(index + 1));
  const shown = (deciding: number[], ...size: number[]) =>
    chainOf(
      rules,
      deciding.map((at) => ({ rule: `rule ${at}`, source: `s${at}` })),
      ...size,
    ).map((step) =>
      step.kind === 'skipped' ? `${step.rules} skipped` : `${step.kind} ${step.rule.position}`,
    );

  test('has what was asked before, the rule that decided, and what was not asked', () =>
    expect(shown([5], 2, 1)).toEqual(['2 skipped', 'passed 3', 'passed 4', 'hit 5', 'later 6', '6 skipped']));
  test('without a rule that decided, all were asked', () =>
    expect(shown([], 2, 1)).toEqual(['10 skipped', 'passed 11', 'passed 12']));
  test('may have several that decided a part each', () =>
    expect(shown([2, 4], 1, 0)).toEqual(['passed 1', 'hit 2', 'passed 3', 'hit 4', 'later 5', '7 skipped']));
});
