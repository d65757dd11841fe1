"""Evaluators around the referee: started in the background, cached, recorded, inside the model."""
