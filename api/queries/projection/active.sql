select generation from control.active
