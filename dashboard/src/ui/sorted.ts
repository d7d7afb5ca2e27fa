/** The order of a list. */
export interface Sorted {
  key: string;
  descending: boolean;
}
