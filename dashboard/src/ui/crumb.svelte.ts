// The name of the thing on the page, where its address has an identifier that says nothing to a reader.

class Crumb {
  #known = $state.raw<{ id: string; name: string } | null>(null);

  /** Names the thing with this identifier; answers what takes the name back. */
  show(id: string, name: string): () => void {
    const known = { id, name };
    this.#known = known;
    return () => {
      if (this.#known === known) this.#known = null;
    };
  }

  /** The name of the thing, or its identifier while no page has named it. */
  of(id: string): string {
    return this.#known?.id === id ? this.#known.name : id;
  }
}

export const crumb = new Crumb();
