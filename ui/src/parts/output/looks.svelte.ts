// How output is looked at, until the page is left.
class Looks {
  // Nothing scrolls sideways where there is no room.
  wrap = $state(matchMedia('(max-width: 759px)').matches);
  times = $state(false);
  raw = $state(false);
}

export const looks = new Looks();
