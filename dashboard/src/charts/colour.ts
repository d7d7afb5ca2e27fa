/** The colour of a token as the canvas takes it: a custom property itself would be the text of `light-dark(…)`. */
export function resolved(host: Element, colours: readonly string[]): string[] {
  const probe = document.createElement('span');
  host.append(probe);
  const found = colours.map((colour) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}

/** A colour that lets the ground through. */
export function faint(colour: string, share: number): string {
  const numbers = /rgba?\(([\d.]+)[ ,]+([\d.]+)[ ,]+([\d.]+)/.exec(colour);
  return numbers ? `rgb(${numbers[1] ?? 0} ${numbers[2] ?? 0} ${numbers[3] ?? 0} / ${share})` : colour;
}
