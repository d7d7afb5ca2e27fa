// A change of what somebody else has changed meanwhile.
import { Problem, asProblem } from '../../../api/problem';
import { t } from './texts';

/** Makes a change. If its thing is no longer as it was shown, the list is loaded again. */
export async function ofWhatWasSeen<T>(change: Promise<T>, reload: () => void): Promise<T> {
  try {
    return await change;
  } catch (error) {
    const { title, status, detail } = asProblem(error);
    if (status !== 412) throw error;
    reload();
    throw new Problem({ title, status, detail, remedy: t('meanwhile.fix') });
  }
}
