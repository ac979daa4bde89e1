// Results that the page itself does not show.

interface Toast {
  id: number;
  text: string;
  action: { label: string; run: () => void } | undefined;
}

class Toasts {
  list = $state<Toast[]>([]);
  #next = 0;

  show(text: string, action?: Toast['action']): void {
    this.list.push({ id: this.#next++, text, action });
  }

  hide(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
