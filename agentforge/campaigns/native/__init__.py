"""What a suite's own format says beyond the referee: its checker's verdict, its ranking."""
